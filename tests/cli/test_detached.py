"""A process that a worker started in a session of its own: what becomes of it when the job has ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, subprocess, sys
nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
child = subprocess.Popen(["sleep", "1000"], start_new_session=True, **nowhere)
open("pid", "w").write(str(child.pid))
sys.exit(int(sys.argv[1]))
"""


def run(folder: Path, code: int) -> tuple[int, str]:
    """The process that a worker left, and what was said."""
    (folder / "train.py").write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "allaboard",
        "run",
        "-n",
        "1",
        "--run-dir",
        "run",
        "--grace",
        "2",
    ]
    done = subprocess.run(
        [*command, "train.py", str(code)], cwd=folder, capture_output=True, timeout=60, check=False
    )
    return int((folder / "pid").read_text()), done.stderr.decode()


def test_it_lives_on_after_a_good_end_and_this_is_told(tmp_path: Path) -> None:
    pid, said = run(tmp_path, 0)
    fd = os.pidfd_open(pid)
    try:
        assert (
            f"left running because it has its own session and streams: pid {pid} (sleep 1000)"
            in said
        )
    finally:
        os.kill(pid, signal.SIGKILL)
    assert select.select([fd], [], [], 20.0)[0]
    os.close(fd)


def test_it_ends_with_a_job_that_failed(tmp_path: Path) -> None:
    pid, said = run(tmp_path, 3)
    assert "left running" not in said
    assert not Path(f"/proc/{pid}").exists()
