"""Ports of our own never stand in the way of those that the job is about to bind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator

import pytest

from allaboard.cluster.rendezvous_ports import RendezvousPorts
from allaboard.cluster.transport.client_handshake import Identity, is_same_roll_call
from allaboard.cluster.transport.link_trial import try_link
from allaboard.cluster.transport.outgoing_socket import open_stream, outgoing_socket
from allaboard.facts import Answer, Declared
from allaboard.protocol.events import Event
from free_ports import free_port

IDENTITY = Identity("", b"", "h0", 0, "")


@contextlib.contextmanager
def _connection(client: socket.socket) -> Iterator[int]:
    """Connect this client from a port of the ephemeral range, and yield that port."""
    with client, socket.create_server(("127.0.0.1", 0)) as server:
        client.bind(("127.0.0.1", 0))
        client.setblocking(True)
        client.connect(server.getsockname())
        with server.accept()[0]:
            yield client.getsockname()[1]


def _bind_as_a_framework(port: int) -> None:
    with socket.socket() as framework:
        framework.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        framework.bind(("0.0.0.0", port))
        framework.listen()


def test_a_framework_binds_the_port_from_which_we_are_connected() -> None:
    with _connection(outgoing_socket(socket.AF_INET, socket.SOCK_STREAM)) as port:
        _bind_as_a_framework(port)


def test_another_programs_connection_would_be_in_its_way() -> None:
    with _connection(socket.socket()) as port, pytest.raises(OSError) as refused:
        _bind_as_a_framework(port)
    assert refused.value.errno == errno.EADDRINUSE


async def _stream_options() -> tuple[int, type[BaseException] | None]:
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    _, writer = await open_stream(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    reuses = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
    writer.close()
    server.close()
    try:
        await open_stream(f"127.0.0.1:{free_port()}")
    except OSError as error:
        return reuses, type(error)
    return reuses, None


def test_streams_to_a_store_are_of_that_kind_and_a_refusal_is_an_error() -> None:
    assert asyncio.run(_stream_options()) == (1, ConnectionRefusedError)


def _ports(events: list[Event]) -> RendezvousPorts:
    return RendezvousPorts(lambda: IDENTITY, events.append, lambda: None)


async def _move_away() -> tuple[int, int, bool]:
    ports = _ports([])
    first = await ports.open_probe_port()
    stays = await ports.reserve_ports({first + 1})
    second = await ports.reserve_ports({first})
    _bind_as_a_framework(first)
    works = (await try_link(IDENTITY, "h0", f"127.0.0.1:{second}")).works
    ports.close()
    return stays, second - first, works


def test_the_probe_port_moves_away_from_a_port_of_the_job() -> None:
    stays, distance, works = asyncio.run(_move_away())
    assert stays == 0 and distance != 0 and works


async def _not_the_meeting(rank: int) -> list[object]:
    events: list[Event] = []
    ports = _ports(events)
    probe_port, own_port = await ports.open_probe_port(), free_port()
    cluster = {"worker:0": f"127.0.0.1:{own_port}", "worker:1": "127.0.0.1:1"}
    task = Declared(
        framework="tensorflow", call="", rank=rank, world_size=2, index=0, cluster=cluster
    )
    await ports.listen_as_task(task, "127.0.0.1:1")
    answers: list[object] = []
    for port in (probe_port, own_port):
        answers.append(await is_same_roll_call(f"127.0.0.1:{port}", IDENTITY))
        answers.append((await try_link(IDENTITY, "h0", f"127.0.0.1:{port}")).answer)
    ports.close()
    return answers


@pytest.mark.parametrize("rank", [0, 1])
def test_no_port_but_the_meeting_place_is_taken_for_it(rank: int) -> None:
    assert asyncio.run(_not_the_meeting(rank)) == [False, Answer.ABOARD] * 2
