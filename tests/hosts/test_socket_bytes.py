"""Bytes through the sockets of a process, over a real connection to itself."""

from __future__ import annotations

import os
import socket

import pytest

from allaboard.hosts.traffic import traffic


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
            before = traffic([os.getpid()])
            here.sendall(bytes(100_000))
            left = 100_000
            while left:
                left -= len(there.recv(left))
            assert traffic([os.getpid()]) - before >= 200_000


def test_nobody_has_none() -> None:
    assert traffic([]) == 0
    assert traffic([2**22 + 1]) == 0
