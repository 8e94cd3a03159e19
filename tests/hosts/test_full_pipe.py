"""A child that can write no more, since who should read its output waits for its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allaboard.hosts.awaited.full_pipe import child_at_full_pipe

LIMIT_S = 20
WRITES = "import sys, threading\n{writer}.write('x' * 300_000)\n"
IN_THREAD = (
    "import sys, threading, time\n"
    "threading.Thread(target=lambda: sys.stdout.write('x' * 300_000)).start()\ntime.sleep(60)\n"
)


@pytest.mark.parametrize("code", [WRITES.format(writer="sys.stdout"), IN_THREAD])
def test_a_child_whose_output_is_not_read(code: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert wait_for_child([child.pid]) == child.pid
        assert child_at_full_pipe(os.getpid(), ()) == 0
        assert child_at_full_pipe(child.pid, [child.pid]) == 0, "it does not read its own output"
    finally:
        child.kill()
        child.communicate()


def test_somebody_else_can_read_it() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITES.format(writer="sys.stdout")], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    reader = subprocess.Popen(["sleep", "60"], stdin=child.stdout)
    try:
        wait_until_it_writes(child.pid)
        assert child_at_full_pipe(os.getpid(), [child.pid]) == 0
    finally:
        for process in (child, reader):
            process.kill()
            process.communicate()


def test_a_child_that_writes_nothing() -> None:
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE)
    try:
        assert child_at_full_pipe(os.getpid(), [child.pid, 2**22 + 1]) == 0
    finally:
        child.kill()
        child.communicate()


def wait_until_it_writes(pid: int) -> None:
    """Return once the process waits in write(2)."""
    end = time.monotonic() + LIMIT_S
    while Path(f"/proc/{pid}/syscall").read_text().split()[0] not in ("1", "64"):
        assert time.monotonic() < end
        time.sleep(0.05)


def wait_for_child(below: list[int]) -> int:
    """Return what is found once something is, or 0 after the limit."""
    end = time.monotonic() + LIMIT_S
    found = 0
    while not found and time.monotonic() < end:
        found = child_at_full_pipe(os.getpid(), below)
        time.sleep(0.05)
    return found
