"""A drill is not staged among a number of workers that its fault cannot have."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("alone", "3", "-n 3: alone needs 4 workers; leave -n out"),
        (
            "other-root",
            "2",
            "-n 2: other-root needs 3 or more: if two workers differ, neither is known",
        ),
        ("asleep", "9", "-n expects a number from 2 to 8"),
    ],
)
def test_it_is_told_what_it_needs(name: str, number: str, said: str) -> None:
    words = [sys.executable, "-m", "allaboard", "drill", name, "-n", number]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
