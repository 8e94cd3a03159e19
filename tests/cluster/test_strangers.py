"""Whoever comes to the meeting place besides the members: none stops the roll call, and who keeps
coming is told. Real sockets, real protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import strangers
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.member_connection import least_wall_offset
from rally import SECRET, Rally

Stranger = Callable[[int, str], Coroutine[Any, Any, None]]
OTHER = "a program that speaks another protocol"
QUICK: dict[str, tuple[Stranger, str]] = {
    "port scanner": (strangers.scanner, "somebody who connects and says nothing"),
    "web client": (strangers.http, "a web client"),
    "gRPC client": (strangers.grpc, "a TensorFlow or JAX process without allaboard"),
    "TLS client": (strangers.tls, "a TLS client"),
    "garbage": (strangers.garbage, OTHER),
    "no message": (strangers.garbled, OTHER + " (JSON is malformed: invalid character (byte 4))"),
    "oversized": (
        strangers.oversized,
        OTHER + " (a frame of 2147483648 bytes; at most 4096 are taken)",
    ),
}
SLOW: dict[str, tuple[Stranger, str]] = {
    "silent": (strangers.silent, "somebody who connects and says nothing"),
    "slow loris": (strangers.loris, OTHER),
}


async def _besieged(stranger: Stranger, said: str, framework: str) -> None:
    async with Rally(4, framework) as rally:
        source = "127.0.3.9"
        came = [asyncio.ensure_future(stranger(rally.port, source)) for _ in range(3)]
        assert await rally.until("NET011") == [
            f"{said} keeps connecting to the rendezvous address from {source}"
        ]
        assert not rally.through
        began = time.monotonic()
        await asyncio.wait_for(rally.all_aboard(lambda: stranger(rally.port, source)), 30)
        assert rally.through == {0, 1, 2, 3}
        assert time.monotonic() - began < 15  # on a busy machine
        await asyncio.gather(*came)


@pytest.mark.parametrize("name", QUICK)
def test_none_stops_the_roll_call_and_each_is_told(name: str) -> None:
    asyncio.run(_besieged(*QUICK[name], "torch"))


@pytest.mark.parametrize("name", SLOW)
def test_who_says_nothing_holds_nobody_up(name: str) -> None:
    asyncio.run(_besieged(*SLOW[name], "jax"))  # where no store's client is a member


def test_a_flood_of_garbage() -> None:
    async def flooded() -> None:
        async with Rally(8) as rally:

            async def flood() -> None:
                while True:
                    some = (strangers.garbage(rally.port, f"127.0.4.{i}") for i in range(1, 200))
                    await asyncio.gather(*some, return_exceptions=True)

            await asyncio.wait_for(rally.all_aboard(flood, flood), 30)
            assert rally.through == set(range(8))
            assert rally.told("NET011")

    asyncio.run(flooded())


def test_more_silent_ones_than_there_are_places() -> None:
    async def crowded() -> None:
        async with Rally(4) as rally:
            rally.leader.listener.max_waiting_callers = 50
            crowd = [
                asyncio.ensure_future(strangers.silent(rally.port, f"127.0.5.{i % 200 + 1}"))
                for i in range(300)
            ]
            await asyncio.wait_for(rally.all_aboard(), 30)
            assert rally.through == {0, 1, 2, 3}
            for one in crowd:
                one.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)

    asyncio.run(crowded())


@pytest.mark.parametrize(
    "job, secret, kind",
    [
        ("job=1", b"wrong", "no-secret"),
        ("job=1", b"", "no-secret"),
        ("job=2", SECRET, "other-job"),
        ("job=2", b"wrong", "no-secret"),
    ],
)
def test_a_worker_that_does_not_belong_here(job: str, secret: bytes, kind: str) -> None:
    async def turned_away() -> None:
        async with Rally(3, secret=SECRET) as rally:
            who = Identity(job, secret, "h9", 1, "127.0.0.1:1")
            for _ in range(3):
                assert await strangers.knock(rally.port, who) == kind
            await asyncio.wait_for(rally.all_aboard(), 30)
            assert rally.through == {0, 1, 2}
            # Another job's worker tells its own people; a stranger who guesses is told here.
            assert bool(rally.told("NET011")) == (kind == "no-secret")

    asyncio.run(turned_away())


def test_a_member_that_says_too_much_is_cut_off_and_comes_again() -> None:
    async def cut_off() -> None:
        async with Rally(3) as rally:
            who = Identity("job=1", b"", "h1", 1, "127.0.0.1:1")
            await asyncio.wait_for(strangers.member_of_no_measure(rally.port, who), 30)
            await asyncio.wait_for(rally.all_aboard(), 30)
            assert rally.through == {0, 1, 2}

    asyncio.run(cut_off())


def test_a_listener_without_the_secret_is_not_believed() -> None:
    async def betrayed() -> None:
        async with Rally(2) as rally:
            who = Identity("job=1", SECRET, "h1", 1, "127.0.0.1:1")
            for _ in range(3):
                assert await strangers.knock(rally.port, who) == "no-secret"
            why = "has a job secret, but the leader was given none"
            assert await rally.until("NET011") == [
                f"h1 (rank 1), which {why}, keeps connecting to the rendezvous address from 127.0.0.1"
            ]
            assert rally.agents_elsewhere == set()

    asyncio.run(betrayed())


@pytest.mark.parametrize("framework, stranger", [("torch", b""), ("tensorflow", b""), ("jax", b"")])
def test_a_plain_client_of_the_own_framework_gets_the_port(framework: str, stranger: bytes) -> None:
    """Mixed adoption: a host without allaboard must find the framework's own listener."""

    async def mixed() -> None:
        async with Rally(3, framework) as rally:
            port = rally.port
            for _ in range(2):  # as a client does that is hung up on
                if framework == "torch":
                    await strangers.say(port, b"\0\xce\xf7\x85\x3c\x0dabcd")
                else:
                    await strangers.grpc(port, "127.0.0.1")
            for _ in range(100):
                if rally.through:
                    break
                await asyncio.sleep(0.02)
            assert rally.through == {0}  # its worker may go and bind the port
            server = await asyncio.start_server(lambda r, w: w.close(), None, port)
            server.close()

    asyncio.run(mixed())


def test_an_agent_whose_stream_broke_is_the_same_when_it_comes_again() -> None:
    async def again() -> None:
        async with Rally(3) as rally:
            await asyncio.wait_for(rally.come_and_go(1), 30)
            await asyncio.wait_for(rally.all_aboard(), 30)
            assert rally.through == {0, 1, 2}
            assert not rally.findings
            assert len(rally.job.status.view(time.monotonic()).members) == 3

    asyncio.run(again())


def test_a_busy_listener_does_not_take_its_own_delay_for_a_wrong_clock() -> None:
    assert least_wall_offset(their_wall=100.0, asked_at=99.0, now=105.0) == 0.0
    assert least_wall_offset(their_wall=400.0, asked_at=99.0, now=105.0) == 295.0
    assert least_wall_offset(their_wall=-200.0, asked_at=99.0, now=105.0) == -299.0
