"""Bytes through the sockets of a process, over a real connection to itself."""

from __future__ import annotations

import os
import socket

import pytest

from allaboard.hosts.socket_bytes import socket_bytes


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
