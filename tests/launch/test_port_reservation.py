"""Ports that are held for the workers until they bind them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from allaboard.launch.port_reservation import (
    FIRST_PORT,
    NoFreePortError,
    ephemeral_start,
    reserve_ports,
)


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def numbers(held: ExitStack, count: int, **span: int) -> list[int]:
    sockets = reserve_ports(count, **span)
    for one in sockets:
        held.enter_context(closing(one))
    return [s.getsockname()[1] for s in sockets]


def server(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    """Binds and listens as a framework does."""
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((address, port))
    one.listen()
    return one


def test_they_are_below_what_the_kernel_hands_out(held: ExitStack) -> None:
    ports = numbers(held, 8)
    assert len(set(ports)) == 8
    assert all(FIRST_PORT <= p < ephemeral_start() for p in ports)


def test_nobody_gets_a_port_twice(held: ExitStack) -> None:
    ports = [p for _ in range(20) for p in numbers(held, 5)]
    assert len(set(ports)) == 100


@pytest.mark.parametrize(
    ("family", "address"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")],
)
def test_a_framework_binds_beside_the_reservation(
    held: ExitStack, family: socket.AddressFamily, address: str
) -> None:
    if family == socket.AF_INET6 and not has_ipv6():
        pytest.skip("not on this machine: IPv6")
    (port,) = numbers(held, 1)
    listener = held.enter_context(closing(server(family, address, port)))
    client = held.enter_context(closing(socket.create_connection(("127.0.0.1", port), 5)))
    peer, _ = listener.accept()
    held.enter_context(closing(peer))
    client.sendall(b"x")
    assert peer.recv(1) == b"x"


def test_a_reservation_answers_nobody(held: ExitStack) -> None:
    (port,) = numbers(held, 1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_port_in_use_is_passed_by(held: ExitStack) -> None:
    first, last = small_range(held)
    held.enter_context(closing(server(socket.AF_INET, "127.0.0.1", first)))
    assert numbers(held, 1, first_port=first, end_port=last) == [first + 1]


def test_a_range_that_is_full_is_named(held: ExitStack) -> None:
    first, last = small_range(held)
    with pytest.raises(NoFreePortError) as refused:
        reserve_ports(3, first_port=first, end_port=last)
    assert re.fullmatch(
        rf"only 2 free ports between {first} and {last - 1}, 3 are needed; "
        "see who holds them with: ss -ltnp",
        str(refused.value),
    )
    assert len(numbers(held, 2, first_port=first, end_port=last)) == 2, "a refusal holds nothing"


def test_nothing_is_asked_for() -> None:
    assert reserve_ports(0) == []


def small_range(held: ExitStack) -> tuple[int, int]:
    """Two neighbouring free ports."""
    for _ in range(100):
        with ExitStack() as mine:
            (first,) = numbers(mine, 1)
        try:
            numbers_of_both = reserve_ports(2, first_port=first, end_port=first + 2)
        except NoFreePortError:
            continue
        for one in numbers_of_both:
            one.close()
        return first, first + 2
    raise AssertionError("no two neighbouring free ports")


def has_ipv6() -> bool:
    try:
        with closing(server(socket.AF_INET6, "::", 0)):
            return True
    except OSError:
        return False
