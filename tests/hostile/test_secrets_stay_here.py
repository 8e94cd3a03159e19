"""Secrets of a job's command, environment and messages are in nothing that a run leaves or shows."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "s3cr3t-Value-42"
SCRIPT = f"""
import os, sys
from pathlib import Path
Path(sys.argv[1]).write_text(repr(dict(os.environ)))
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # its own traceback is its own affair
raise RuntimeError("cannot reach https://me:{SECRET}@127.0.0.1/x, password is {SECRET}")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that was started with secrets in its arguments, and fails with one in its message."""
    folder = tmp_path_factory.mktemp("run")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    command = [
        *(sys.executable, "-m", "allaboard", "run", "-n", "1", "--verbose"),
        *("--run-dir", str(folder / "kept"), "--report", str(folder / "copy.json")),
        *("--events", str(folder / "events"), "--env", f"SOME_PW={SECRET}"),
        *(str(script), str(folder / "environment"), "--password", SECRET),
    ]
    done = subprocess.run(
        command,
        env=dict(os.environ, ALLABOARD_SECRET=SECRET),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )
    assert done.returncode == 1, done.stderr
    return folder, done.stdout + done.stderr


def test_no_file_of_the_run_has_them(run: tuple[Path, str]) -> None:
    folder, _ = run
    files = {*folder.rglob("*.json*"), *folder.rglob("*.html"), folder / "events"}
    names = {file.name for file in files}
    assert {"journal.jsonl", "report.json", "report.html", "copy.json", "events"} <= names
    for file in files:
        assert SECRET not in file.read_text(), file
    assert "--password" in (folder / "kept/journal.jsonl").read_text()


def test_no_line_of_allaboard_has_them(run: tuple[Path, str]) -> None:
    _, text = run
    assert "cannot reach https://(redacted)@127.0.0.1" in text
    assert SECRET not in text


def test_a_worker_does_not_get_the_secret_of_the_job(run: tuple[Path, str]) -> None:
    environment = (run[0] / "environment").read_text()
    assert "ALLABOARD_BOX" in environment and "ALLABOARD_SECRET" not in environment


def test_the_copy_of_the_report_is_for_its_owner_alone(run: tuple[Path, str]) -> None:
    assert stat.S_IMODE((run[0] / "copy.json").stat().st_mode) == 0o600


def test_what_diagnose_prints_of_the_run_has_none(run: tuple[Path, str]) -> None:
    log = run[0] / "rank0.log"
    frame = '  File "/w/train.py", line 3, in <module>\n    login()\n'
    log.write_text(f"Traceback (most recent call last):\n{frame}RuntimeError: token='{SECRET}'\n")
    for path in (run[0] / "kept", log):
        done = subprocess.run(
            [sys.executable, "-m", "allaboard", "diagnose", str(path), "-v"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert SECRET not in done.stdout + done.stderr
        assert "(redacted)" in done.stdout
