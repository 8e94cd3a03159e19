"""What is at the other end of a wait, told from outside; the processes are real."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from allaboard.hosts.awaited.awaited_end import awaited_end
from allaboard.hosts.awaited.full_pipe import written_descriptor

PATIENCE_S = 10.0
"""Seconds until a process has come to its wait, on a busy machine too."""
RECEIVES_DATAGRAM = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("127.0.0.1", int(sys.argv[1])))
s.recv(1)
"""
RECEIVES_ANSWER = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.settimeout(100); s.recv(1)
"""
OPENS = "import sys; open(sys.argv[1])"
FILLS = """
import os, sys
fd = int(sys.argv[1])
while True: os.write(fd, b"x" * 4096)
"""
PRINTS = "while True: print('x' * 4096, flush=True)"
SLEEPS = "import time; time.sleep(100)"


def seen(code: str, *arguments: str, expected: str = "") -> str:
    with subprocess.Popen([sys.executable, "-c", code, *arguments]) as process:
        try:
            until = time.monotonic() + PATIENCE_S
            while (end := awaited_end(process.pid)) != expected and time.monotonic() < until:
                os.sched_yield()
            return end
        finally:
            process.kill()


def test_a_name_server_that_does_not_answer() -> None:
    expected = "an answer from the name server 127.0.0.1"
    assert seen(RECEIVES_DATAGRAM, "53", expected=expected) == expected


def test_an_address_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        expected = f"an answer from 127.0.0.1:{port}"
        assert seen(RECEIVES_ANSWER, str(port), expected=expected) == expected


def test_a_named_pipe_that_nobody_opens(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "labels")
    expected = f"somebody to open the other end of the named pipe {tmp_path / 'labels'}"
    assert seen(OPENS, str(tmp_path / "labels"), expected=expected) == expected


def test_a_full_pipe_that_another_process_does_not_read() -> None:
    reader = subprocess.Popen([sys.executable, "-c", SLEEPS], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    with reader, reader.stdin:
        process = subprocess.Popen([sys.executable, "-c", PRINTS], stdout=reader.stdin)
        try:
            name = Path(f"/proc/{reader.pid}/comm").read_text().strip()
            expected = f"pid {reader.pid} ({name}) to read the full pipe of its standard output"
            until = time.monotonic() + PATIENCE_S
            while (end := awaited_end(process.pid)) != expected and time.monotonic() < until:
                os.sched_yield()
            assert end == expected
        finally:
            process.kill()
            process.wait()
            reader.kill()


def test_a_pipe_that_is_ours_to_read_is_no_reason() -> None:
    reads, writes = os.pipe()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", FILLS, str(writes)], pass_fds=(writes,)
        ) as process:
            until = time.monotonic() + PATIENCE_S
            file = f"/proc/{process.pid}/syscall"
            while written_descriptor(file) != writes and time.monotonic() < until:
                os.sched_yield()
            assert written_descriptor(file) == writes and awaited_end(process.pid) == ""
            process.kill()
    finally:
        os.close(reads)
        os.close(writes)


def test_nothing_that_has_another_end() -> None:
    assert seen(SLEEPS) == ""
    assert awaited_end(2**30) == ""
