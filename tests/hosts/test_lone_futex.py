"""A process of one thread that waits for another thread, which it does not have."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from allaboard.hosts.awaited.lone_futex import waits_alone

LIMIT_S = 20.0
LOCK = "import threading\nlock = threading.Lock()\nlock.acquire()\nprint('up', flush=True)\n"
TWO_THREADS = "threading.Thread(target=lock.acquire).start()\n"


@pytest.mark.parametrize(
    ("code", "is_alone"),
    [
        pytest.param(LOCK + "lock.acquire()", True, id="its only thread waits for a lock"),
        pytest.param(LOCK + TWO_THREADS + "lock.acquire()", False, id="it has a second thread"),
        pytest.param(LOCK + "input()", False, id="it waits for input"),
    ],
)
def test_who_waits_alone(code: str, is_alone: bool) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        until = time.monotonic() + (LIMIT_S if is_alone else 0.5)
        while time.monotonic() < until and waits_alone(child.pid) is not is_alone:
            time.sleep(0.05)
        assert waits_alone(child.pid) is is_alone
    finally:
        child.kill()
        child.communicate()


def test_a_process_that_has_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not waits_alone(child.pid)
