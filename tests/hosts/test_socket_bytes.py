"""Bytes through the sockets of a process, over a real connection to itself."""

from __future__ import annotations

import os
import socket
import time

import pytest

from allaboard.hosts.process_sockets import process_sockets
from allaboard.hosts.socket_bytes import silent_times, socket_bytes


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_what_was_sent_is_counted_at_both_ends(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("not on this machine: IPv6")
    with listener, socket.create_connection(listener.getsockname()[:2]) as here:
        there, _ = listener.accept()
        with there:
            before = socket_bytes([os.getpid()])
            here.sendall(bytes(100_000))
            left = 100_000
            while left:
                left -= len(there.recv(left))
            assert socket_bytes([os.getpid()]) - before >= 200_000


def test_nobody_has_none() -> None:
    assert socket_bytes([]) == 0
    assert socket_bytes([2**22 + 1]) == 0


def test_the_time_without_data_grows_until_data_go_either_way() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as here,
        listener.accept()[0] as there,
    ):
        inodes = {os.fstat(end.fileno()).st_ino for end in (here, there)}
        deadline = time.monotonic() + 5
        while min(silent_times(inodes).values(), default=0.0) < 0.1 and time.monotonic() < deadline:
            pass
        ends = "{}:{}".format(*here.getsockname())
        (shown,) = [
            s for s in process_sockets(os.getpid(), with_silence=True)
            if s.local == ends and s.state == "ESTAB"
        ]  # fmt: skip
        assert shown.silent_s >= 0.1
        silent_before = silent_times(inodes)
        there.sendall(b"x")
        here.recv(1)
        silent_after = silent_times(inodes)
    assert set(silent_before) == inodes
    assert all(silent_after[inode] < silent_before[inode] for inode in inodes)
    assert silent_times(set()) == {}
