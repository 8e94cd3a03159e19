"""Addresses that lead to this host although they are not its own; translated ones are staged by
tests/meetings."""

from __future__ import annotations

import asyncio
import socket

import pytest

from allaboard.cluster.forwarded_address import leads_here
from allaboard.cluster.rendezvous_endpoint import endpoint_port, listening_port
from allaboard.cluster.transport.listener import Listener
from allaboard.facts import Declared
from free_ports import free_port


async def _relay(target: int) -> asyncio.Server:
    """Return a server that hands everything on to a port of this host, as a published port does."""

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_target = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(_copy(reader, to_target[1]), _copy(to_target[0], writer))

    return await asyncio.start_server(hand_on, "127.0.0.1", 0)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4096):
        writer.write(data)
    writer.close()


async def _through_a_relay() -> tuple[bool | None, bool]:
    port = free_port()
    relay = await _relay(port)
    result = await leads_here(f"127.0.0.1:{relay.sockets[0].getsockname()[1]}", port)
    relay.close()
    free_again = await leads_here(f"127.0.0.1:{port}", port)
    return result, bool(free_again)


def test_a_forwarded_port_leads_here_and_the_own_one_is_free_afterwards() -> None:
    assert asyncio.run(_through_a_relay()) == (True, True)


async def _at_another_roll_call(secret: bytes) -> bool | None:
    other = Listener("", secret, lambda m: None, lambda m, w: None, lambda k: None)
    await other.open_port(0)
    try:
        return await leads_here(f"127.0.0.1:{other.port}", free_port())
    finally:
        other.close()


@pytest.mark.parametrize("secret", [b"", b"the secret of that job"])
def test_the_roll_call_of_another_host_is_not_taken_for_this_ones(secret: bytes) -> None:
    assert asyncio.run(_at_another_roll_call(secret)) is False


def test_where_nothing_listens_or_the_port_is_taken_it_does_not_lead_here() -> None:
    assert asyncio.run(leads_here(f"127.0.0.1:{free_port()}", free_port())) is False
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        assert asyncio.run(leads_here(f"127.0.0.1:{port}", port)) is None


def test_rank_0_listens_where_it_was_told_to() -> None:
    declared = Declared(framework="jax", call="", rank=0, world_size=2, bind="0.0.0.0:8476")
    assert listening_port(declared, "node0:29500") == 8476
    plain = Declared(framework="jax", call="", rank=0, world_size=2)
    assert listening_port(plain, "node0:29500") == 29500
    assert [endpoint_port(a) for a in ("localhost:0000", "localhost", "")] == [0, 0, 0]
