"""What a process waits to read from, and who holds the other end: real processes, examined from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from allaboard.facts import Awaited
from allaboard.hosts.awaited.descriptors import awaited_descriptors
from allaboard.hosts.awaited.peers import awaited_peers

PRELUDE = "import os, select, socket, sys; fd = int(sys.argv[1]); "


@contextmanager
def running(code: str, *fds: int) -> Iterator[int]:
    """A child that runs this code with these descriptors, once it waits in the kernel."""
    command = [sys.executable, "-c", PRELUDE + code, *map(str, fds)]
    with subprocess.Popen(command, pass_fds=fds) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def once(look: Callable[[], tuple[Awaited, ...]]) -> tuple[Awaited, ...]:
    deadline = time.monotonic() + 20
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return seen


@contextmanager
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        near = socket.create_connection(door.getsockname())
        far, _ = door.accept()
        with near, far:
            yield near, far


@pytest.mark.parametrize(
    "wait",
    [
        "socket.socket(fileno=fd).recv(1)",
        "s = socket.socket(fileno=fd); s.settimeout(60); s.recv(1)",
        "e = select.epoll(); e.register(fd, select.EPOLLIN); e.poll(60)",
    ],
    ids=["recv", "recv with a timeout", "epoll"],
)
def test_the_other_end_of_a_connection_is_held_by_this_process(wait: str) -> None:
    with connection() as (near, far), running(wait, far.fileno()) as pid:
        ends = [f"127.0.0.1:{s.getsockname()[1]}" for s in (far, near)]
        (awaited,) = once(lambda: awaited_peers(pid))
        assert [awaited.local, awaited.remote] == ends
        assert awaited.pids == (os.getpid(),)


def test_the_other_end_of_a_unix_socket_and_of_a_pipe() -> None:
    near, far = socket.socketpair()
    with near, far, running("socket.socket(fileno=fd).recv(1)", far.fileno()) as pid:
        assert once(lambda: awaited_peers(pid)) == (
            Awaited(means="a Unix socket", pids=(os.getpid(),)),
        )
    read, write = os.pipe()
    with running("os.read(fd, 1)", read) as pid:
        assert once(lambda: awaited_peers(pid)) == (Awaited(means="a pipe", pids=(os.getpid(),)),)
    os.close(read)
    os.close(write)


def test_a_server_waits_for_nobody_in_particular() -> None:
    """Whoever connected to it may ask next, or nobody: that is no wait for them."""
    code = (
        "door = socket.socket(fileno=fd); one, _ = door.accept(); e = select.epoll();"
        "e.register(one, select.EPOLLIN); e.register(door, select.EPOLLIN); e.poll(60)"
    )
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        running(code, door.fileno()) as pid,
        socket.create_connection(door.getsockname()),
    ):
        deadline = time.monotonic() + 20
        while len(awaited_descriptors(pid).numbers) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert awaited_peers(pid) == ()


def test_who_computes_or_has_gone_waits_for_nothing() -> None:
    assert awaited_peers(2**22 + 5) == ()
    assert awaited_peers(os.getpid()) == ()
