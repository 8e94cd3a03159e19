"""What a blocked process waits for, told from outside; the processes are real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from allaboard.hosts.blocked import blocked
from allaboard.hosts.mounts import mount_of

OPENS = "import os, sys; print(flush=True); os.open(sys.argv[1], os.O_RDONLY)"
READS = "import os; print(flush=True); os.read(0, 1)"
SPAWNS = (
    "import os, sys; print(flush=True);"
    "a = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0);"
    "os.posix_spawn('/bin/true', ['true'], {}, file_actions=[a])"
)


def told(code: str, *words: str, wanted: str) -> str:
    """What is told of a process once it has come to its wait; at most 10 s."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(10_000):
            if wanted in (said := blocked(process.pid)):
                break
        return said
    finally:
        _end(process, words)


def _end(process: subprocess.Popen[bytes], words: tuple[str, ...]) -> None:
    for pipe in words:  # a child between spawn and exec outlives its parent's end
        fd = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        process.kill()
        process.wait()
        os.close(fd)
    process.kill()
    process.communicate()


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
    assert blocked(2**22 - 1) == ""
