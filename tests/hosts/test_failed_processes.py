"""Processes of real programs that failed and that nobody has waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.hosts import proc
from allaboard.hosts.awaited.failed_processes import failed_processes

PROGRAM = """
import multiprocessing as mp, os, sys, time
def end(how):
    os.kill(os.getpid(), -how) if how < 0 else sys.exit(how)
def wait():
    time.sleep(600)
if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    ends = [context.Process(target=end, args=(how,)) for how in (0, 3, -9, -15)]
    sleeper = context.Process(target=wait)
    for p in [*ends, sleeper]:
        # Not start(): it waits for those that have ended.
        p._popen = p._Popen(p)
    print(*(p._popen.pid for p in [*ends, sleeper]), flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["fork", "spawn"])
def program(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A program with a process of each kind of end, and one that lives; and their pids."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        until = time.monotonic() + 30
        while time.monotonic() < until and any(proc.wait_status(p) is None for p in pids[:4]):
            time.sleep(0.02)
        yield process, pids
        os.kill(pids[4], signal.SIGKILL)
        process.kill()


def test_what_failed_is_known_to_the_program_and_to_its_other_processes(
    program: tuple[subprocess.Popen[str], list[int]],
) -> None:
    process, pids = program
    failed = {(pids[1], 3), (pids[2], -9)}
    assert set(failed_processes(process.pid, proc.descendants_of(process.pid))) == failed
    assert set(failed_processes(pids[4], {})) == failed


def test_processes_of_a_program_that_started_this_one_by_a_command_are_not_meant() -> None:
    with (
        subprocess.Popen(["sh", "-c", "exit 3"]) as failed,
        subprocess.Popen(["sleep", "600"]) as process,
    ):
        until = time.monotonic() + 30
        while time.monotonic() < until and proc.wait_status(failed.pid) is None:
            time.sleep(0.02)
        assert failed_processes(process.pid, {}) == ()
        process.kill()
