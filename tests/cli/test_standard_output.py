"""Standard output that takes nothing: one line and an exit code, for every command."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "words", [["rules"], ["explain", "NET001"], ["--version"], ["check", "hostfile"]]
)
def test_a_full_device_is_one_line(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "hostfile").write_text("a slots=2\n")
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-m", "allaboard", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=60,
        )  # fmt: skip
    said = "allaboard: standard output cannot be written: no space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("words", [["rules"], ["check", "hostfile"]])
def test_a_closed_one_is_no_error(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "hostfile").write_text("a slots=2\n")
    command = shlex.join([sys.executable, "-m", "allaboard", *words])
    done = subprocess.run(
        f"{command} >&-", shell=True, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_enough_is_no_error() -> None:
    words = [sys.executable, "-m", "allaboard", "rules"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 1
