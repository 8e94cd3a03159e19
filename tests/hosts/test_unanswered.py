"""Connections that nobody answers, as the kernel counts them."""

from __future__ import annotations

import os
import socket

from allaboard.hosts.unanswered import Unanswered, address


def test_addresses_as_the_kernel_writes_them() -> None:
    assert str(address("0100007F")) == "127.0.0.1"
    assert str(address("0000000000000000FFFF00000100007F")) == "127.0.0.1"
    assert address("00000000000000000000000001000000").is_loopback


def test_a_live_connection_is_none() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        assert Unanswered().ask(os.getpid()) == ()
    assert Unanswered().ask(2**22 + 1) == ()
