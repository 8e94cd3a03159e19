"""A file:// rendezvous on one host: what was left is told of, what is in use is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "jobs" / "torch_at_file.py"
WARM = ("--warm",)
"""Where it does not matter how the ranks end: one import for both."""


def run(folder: Path, *arguments: str, options: Sequence[str] = ()) -> tuple[int, list[str], str]:
    """The exit code of two ranks that meet in there, the rules that spoke, and all that was printed."""
    words = ["-m", "allaboard", "run", "-n", "2", "--grace", "2", "--run-dir", str(folder / "run")]
    done = subprocess.run(
        [sys.executable, *words, *options, str(JOB), str(folder / "meeting"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    report = json.loads((folder / "run" / "report.json").read_text())
    rules = [f["rule"] for f in report["findings"]]
    return done.returncode, rules, done.stdout + done.stderr


@pytest.mark.zoo
def test_who_was_killed_leaves_it_and_it_is_told_of(tmp_path: Path) -> None:
    left = run(tmp_path, "killed", options=WARM)
    assert left[:2] == (0, []), left[2]
    os.utime(tmp_path / "meeting", (time.time() - 60.0,) * 2)
    again = run(tmp_path, options=WARM)
    assert again[:2] == (3, ["JOIN008"]), again[2]
    assert f"rm {tmp_path}/meeting" in again[2]
    (tmp_path / "meeting").unlink()
    healthy = run(tmp_path, options=WARM)
    assert healthy[:2] == (0, []), healthy[2]
    assert healthy[2].count("met 1") == 2


@pytest.mark.zoo
def test_a_script_that_destroys_nothing_leaves_nothing(tmp_path: Path) -> None:
    """As without us: torch removes the file when the interpreter lets go of the group."""
    ended = run(tmp_path, "ddp")
    assert ended[:2] == (0, []), ended[2]
    assert not (tmp_path / "meeting").exists()


@pytest.mark.zoo
def test_a_place_that_does_not_answer_holds_up_neither_the_job_nor_its_end(tmp_path: Path) -> None:
    """Who reads a pipe waits for whoever may yet write into it, as before a disk that is away."""
    os.mkfifo(tmp_path / "meeting")
    held = os.open(tmp_path / "meeting", os.O_RDWR)
    try:
        code, rules, text = run(tmp_path)
    finally:
        os.close(held)
    assert (code, rules) == (1, ["EXIT002"]) and "allaboard's own" not in text, text
    assert "[0] torch.distributed.DistStoreError: Illegal seek" in text
