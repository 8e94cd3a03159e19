"""What the kernel counts of real connections of this process."""

from __future__ import annotations

import os
import socket

import pytest

from allaboard.hosts.tcp_info import tcp_flows


def test_both_ends_of_a_connection_with_what_went_over_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        one.sendall(b"x" * 5000)
        other.recv(2000)
        found = {f.local: f for f in tcp_flows([os.getpid()])[os.getpid()]}
        mine, theirs = (found[f"127.0.0.1:{s.getsockname()[1]}"] for s in (one, other))
    assert (mine.remote, theirs.remote) == (theirs.local, mine.local)
    assert (theirs.received, theirs.unread) == (5000, 3000)
    assert mine.sent in (5000, 5001)  # the kernel counts the opening of a connection as a byte
    assert 0 < mine.least < 1


def test_an_address_of_ipv4_in_a_socket_of_ipv6_is_told_as_it_is() -> None:
    """As TensorFlow's and gRPC's are."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("not on this machine: IPv6")
    with (
        socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server,
        socket.create_connection(("127.0.0.1", server.getsockname()[1])) as one,
        server.accept()[0],
    ):
        ends = {(f.local, f.remote) for f in tcp_flows([os.getpid()])[os.getpid()]}
        here, there = one.getsockname()[1], server.getsockname()[1]
    assert {
        (f"127.0.0.1:{here}", f"127.0.0.1:{there}"),
        (f"127.0.0.1:{there}", f"127.0.0.1:{here}"),
    } <= ends


def test_one_of_ipv6_is_told_whole() -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("not on this machine: IPv6")
    with server, socket.create_connection(server.getsockname()[:2]) as one, server.accept()[0]:
        found = {f.local: f.remote for f in tcp_flows([os.getpid()])[os.getpid()]}
        here, there = one.getsockname()[1], server.getsockname()[1]
    assert found[f"::1:{here}"] == f"::1:{there}"


def test_a_process_that_is_gone_has_none() -> None:
    assert tcp_flows([2**22 - 1]) == {}
