"""What the kernel counts of real connections of this process."""

from __future__ import annotations

import os
import socket

from allaboard.hosts.tcp_info import Sockets


def test_both_ends_of_a_connection_with_what_went_over_it() -> None:
    asked = Sockets()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        one.sendall(b"x" * 5000)
        other.recv(2000)
        flows = {f.local: f for f in asked.flows([os.getpid()])[os.getpid()]}
        mine, theirs = (flows[f"127.0.0.1:{s.getsockname()[1]}"] for s in (one, other))
    asked.close()
    assert (mine.remote, theirs.remote) == (theirs.local, mine.local)
    assert (theirs.received, theirs.unread) == (5000, 3000)
    assert mine.sent in (5000, 5001)  # the kernel counts the opening of a connection as a byte
    assert 0 < mine.least < 1


def test_a_process_that_is_gone_has_none() -> None:
    asked = Sockets()
    assert asked.flows([2**22 - 1]) == {}
    asked.close()
