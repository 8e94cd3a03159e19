"""For how long the main thread of a process has slept."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from allaboard.hosts.awaited.blocked_time import blocked_time

BESIDE = (
    "import threading, time\n"
    "def poll():\n    while True: time.sleep(0.01)\n"
    "threading.Thread(target=poll, daemon=True).start()\n"
    "print('up', flush=True)\nthreading.Event().wait()"
)


@contextmanager
def running(code: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_main_thread_that_waits_has_slept_whatever_other_threads_do() -> None:
    with running(BESIDE) as pid:
        time.sleep(0.5)
        first, began = blocked_time(pid), time.monotonic()
        if not first:
            pytest.skip("this kernel does not tell when a thread last ran")
        time.sleep(1.0)
        assert blocked_time(pid) - first == pytest.approx(time.monotonic() - began, abs=0.2)


@pytest.mark.parametrize(
    "loop", ["while True: pass", "import time\nwhile True: time.sleep(0.01)"], ids=["runs", "polls"]
)
def test_one_that_runs_again_and_again_has_not(loop: str) -> None:
    with running(f"print('up', flush=True)\n{loop}") as pid:
        time.sleep(0.5)
        assert blocked_time(pid) < 0.3


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert blocked_time(2**22 + 1) == 0.0
