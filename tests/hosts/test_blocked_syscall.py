"""What a blocked process waits for, told from outside; the processes are real."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from allaboard.hosts.blocked_syscall import describe_blocked_syscall
from allaboard.hosts.mounts import mount_of

OPENS = "import os, sys; print(flush=True); os.open(sys.argv[1], os.O_RDONLY)"
READS = "import os; print(flush=True); os.read(0, 1)"
SPAWNS = (
    "import os, sys; print(flush=True);a = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, "
    "0);os.posix_spawn('/bin/true', ['true'], {}, file_actions=[a])"
)


WARDEN = "import os, sys; sys.stdin.read(); os.killpg(int(sys.argv[1]), 9)"
"""Ends the group once whoever holds its standard input has gone, whatever became of that one."""
PATIENCE = 10.0
"""Seconds until a process has come to its wait, on a busy machine too."""


def told(code: str, *words: str, wanted: str) -> str:
    """What is told of a process once it has come to its wait.

    It is ended as a group: between spawn and exec a child outlives its parent's end, waits for a pipe that
    nobody opens, and holds the parent's output. A test that is killed itself leaves that to the warden.
    """
    with (
        subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process,
        ending(process.pid),
    ):
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE)[0], "it did not start"
        until = time.monotonic() + PATIENCE
        while (
            wanted not in (said := describe_blocked_syscall(process.pid))
            and time.monotonic() < until
        ):
            os.sched_yield()
        return said


@contextmanager
def ending(group: int) -> Iterator[None]:
    """The group does not outlive this context, nor this process."""
    warden = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WARDEN, str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(group, signal.SIGKILL)
        warden.kill()
        warden.communicate()


def test_nothing_is_left_where_the_test_itself_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_blocked_syscall as t;"
        "t.describe_blocked_syscall = lambda pid: print(pid, flush=True) or '';"
        "t.told(t.SPAWNS, sys.argv[2], wanted='starting')"
    )
    here = str(Path(__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", code, here, str(pipe)], stdout=subprocess.PIPE, text=True
    ) as test:
        assert test.stdout is not None
        group = int(test.stdout.readline())
        test.kill()
        test.communicate(timeout=PATIENCE)
    until = time.monotonic() + PATIENCE
    while left(group) and time.monotonic() < until:
        os.sched_yield()
    assert not left(group)


def left(group: int) -> bool:
    """Whether a process of this group goes on."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


def test_the_file_and_its_mount_are_named(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    here = mount_of(str(tmp_path))
    assert here is not None
    expected = f"openat of {pipe} on {here.point} ({here.filesystem} of {here.source})"
    assert told(OPENS, str(pipe), wanted="openat") == expected


def test_a_descriptor_that_is_no_file_is_named_as_it_is() -> None:
    assert told(READS, wanted="read").startswith("read of pipe:[")


def test_a_program_that_is_being_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert told(SPAWNS, str(pipe), wanted="starting") == (
        "starting a program, whose file has not been read yet"
    )


def test_who_is_gone_tells_nothing() -> None:
    assert describe_blocked_syscall(2**22 - 1) == ""
