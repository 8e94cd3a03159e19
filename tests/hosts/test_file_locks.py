"""Who waits for a file lock, and who holds it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from allaboard.facts import LockWait
from allaboard.hosts.file_locks import lock_waits

LIMIT = 20
TEXT = """\
1: POSIX  ADVISORY  WRITE 811 00:19:1036 0 EOF
2: FLOCK  ADVISORY  WRITE 700 08:01:42 0 EOF
2: -> FLOCK  ADVISORY  WRITE 701 08:01:42 0 EOF
2:  -> FLOCK  ADVISORY  WRITE 702 08:01:42 0 EOF
2: -> FLOCK  ADVISORY  READ  703 08:01:42 0 EOF
3: OFDLCK ADVISORY  WRITE -1 00:05:7 0 0
10: -> POSIX  ADVISORY  WRITE 704 00:19:99 100 200
a line of another kernel
"""
CODE = """
import fcntl, sys
file = open(sys.argv[1])
print("asks", flush=True)
fcntl.flock(file, fcntl.LOCK_EX)
print("has it", flush=True)
"""


def test_every_waiter_of_the_table() -> None:
    assert lock_waits(TEXT) == (
        LockWait(701, (700,), ""),
        LockWait(702, (700,), ""),
        LockWait(703, (700,), ""),
        LockWait(704, (), ""),
    )


def test_nobody_waits() -> None:
    assert lock_waits("") == ()
    assert lock_waits(TEXT.splitlines()[0]) == ()


def test_the_table_of_this_host_can_be_read() -> None:
    assert isinstance(lock_waits(), tuple)


def test_real_processes_wait_for_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "dataset.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = [start(path) for _ in range(3)]
        try:
            pids = sorted(p.pid for p in waiting)
            found = until(pids)
            assert [w.waiter for w in found] == pids
            assert {w.path for w in found} == {str(path)}
            assert all(os.getpid() in w.holders for w in found)
            fcntl.flock(file, fcntl.LOCK_UN)
            for process in waiting:
                out, _ = process.communicate(timeout=LIMIT)
                assert out == "has it\n"
        finally:
            for process in waiting:
                process.kill()
                process.communicate()
    assert not [w for w in lock_waits() if w.waiter in pids]


def start(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asks\n"
    return process


def until(pids: list[int]) -> list[LockWait]:
    """The waits of these processes, once all of them wait."""
    end = time.monotonic() + LIMIT
    while True:
        found = [w for w in lock_waits() if w.waiter in pids]
        if len(found) == len(pids) or time.monotonic() > end:
            return sorted(found, key=lambda w: w.waiter)


OPENS = """
import sys, time
file = open(sys.argv[1]) if sys.argv[1] else None
print("opened", flush=True)
sys.stdin.read()
"""


def test_a_process_that_may_ask_again_and_again(tmp_path: Path) -> None:
    """It has open what another one has locked; or nothing, and one lock alone can be the one."""
    path = tmp_path / "runs.db"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        asking, other = open_file(str(path)), open_file("")
        try:
            own = os.getpid()
            found = lock_waits(members=[own, asking.pid, other.pid])
            assert [w for w in found if w.waiter in (own, asking.pid, other.pid)] == [
                LockWait(asking.pid, (own,), str(path), polls=True, has_open=True),
                LockWait(other.pid, (own,), str(path), polls=True, has_open=False),
            ]
            # Nobody of the members holds it: it is no lock of theirs.
            assert not any(w.waiter == other.pid for w in lock_waits(members=[other.pid]))
        finally:
            for process in (asking, other):
                process.communicate()
    assert not any(w.waiter == asking.pid for w in lock_waits(members=[own, asking.pid]))


def open_file(path: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", OPENS, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "opened\n"
    return process
