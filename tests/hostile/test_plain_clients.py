"""Who may free the framework's port: a real client of the framework that comes again, and nobody if the job
has a secret, unless its user says that some hosts run without allaboard."""

from __future__ import annotations

import asyncio
import struct

import pytest

from allaboard.cluster.framework_clients import FrameworkClients
from allaboard.cluster.job_addresses import JobAddresses, find_addresses
from allaboard.cluster.leader import Leader
from allaboard.cluster.transport.protocol_sniffer import sniff_caller
from allaboard.cluster.transport.wire import GREETING, STORE_HELLO
from allaboard.facts import Knock

MAGIC = STORE_HELLO[:5]
PING = STORE_HELLO + struct.pack("<I", 18919)
OLD_QUERY = MAGIC + b"\x04" + struct.pack("<Q", 5) + b"init/"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0$\4\0\0\0\0\0"


def knock(kind: str, peer: str = "10.0.0.9", at: float = 1.0) -> Knock:
    return Knock(peer=peer, kind=kind, said="a PyTorch process without allaboard", knocked_at=at)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PING, "store"),
        (OLD_QUERY[: len(GREETING)], "store"),
        (PREFACE, "grpc"),
        (MAGIC, "other"),
        (MAGIC + b"\x0d", "other"),
        (MAGIC + b"\xff" * 8, "other"),
        (b"PRI", "other"),
        (GREETING, "ours"),
    ],
)
def test_only_what_the_client_really_sends_is_a_client(data: bytes, kind: str) -> None:
    assert sniff_caller(data) == kind


def test_one_connection_is_a_probe_and_two_are_a_client() -> None:
    clients = FrameworkClients()
    assert not clients.stranger_event("torch", knock("store")).is_plain_client
    assert not clients.stranger_event("torch", knock("store", "10.0.0.8")).is_plain_client
    assert not clients.stranger_event("torch", knock("grpc")).is_plain_client
    assert clients.stranger_event("torch", knock("store")).is_plain_client


def test_a_client_from_elsewhere_must_keep_coming_where_all_hosts_are_known() -> None:
    clients = FrameworkClients(job_addresses=lambda: frozenset({"10.0.0.1", "10.0.0.2"}))
    came = [clients.stranger_event("torch", knock("store", at=at)) for at in (1.0, 2.0, 10.5, 11.0)]
    assert [e.is_plain_client for e in came] == [False, False, False, True]
    came = [clients.stranger_event("torch", knock("store", "10.0.0.2", at)) for at in (1.0, 2.0)]
    assert [e.is_plain_client for e in came] == [False, True]


def test_addresses_are_known_of_all_hosts_or_of_none() -> None:
    async def look() -> list[frozenset[str]]:
        hosts = [{"127.0.0.1", "127.0.0.2"}, {"127.0.0.1", "x" * 300}, set[str]()]
        return [await find_addresses(each) for each in hosts]

    assert asyncio.run(look()) == [{"127.0.0.1", "127.0.0.2"}, frozenset(), frozenset()]


def test_addresses_are_looked_up_once_and_when_somebody_asks() -> None:
    async def look() -> list[frozenset[str] | None]:
        tasks: list[asyncio.Task[None]] = []
        addresses = JobAddresses(
            lambda: {"127.0.0.1"}, lambda work: tasks.append(asyncio.ensure_future(work))
        )
        first = addresses.known_addresses()
        await asyncio.gather(*tasks)
        assert len(tasks) == 1
        return [first, addresses.known_addresses()]

    assert asyncio.run(look()) == [None, {"127.0.0.1"}]


def test_while_they_are_looked_up_nobody_is_a_client() -> None:
    found: list[frozenset[str] | None] = [None, frozenset()]
    clients = FrameworkClients(job_addresses=lambda: found.pop(0))
    came = [clients.stranger_event("torch", knock("store", at=at)) for at in (1.0, 2.0, 3.0)]
    assert [e.is_plain_client for e in came] == [False, False, True]


async def port_stays_open(secret: bytes, is_mixed: bool, words: bytes, times: int) -> bool:
    leader = Leader("job", secret, "torch", lambda: None, is_mixed=is_mixed)
    await leader.listener.open_port(0)
    try:
        for _ in range(times):
            if not leader.listener.is_open:
                break
            reader, writer = await asyncio.open_connection("127.0.0.1", leader.listener.port)
            writer.write(words)
            writer.write_eof()
            await reader.read()
            writer.close()
            await asyncio.sleep(0.05)
        return leader.listener.is_open
    finally:
        leader.close()


@pytest.mark.parametrize(
    ("secret", "is_mixed", "words", "stays"),
    [
        (b"s", False, PING, True),
        (b"s", True, PING, False),
        (b"", False, PING, False),
        (b"", False, MAGIC, True),
    ],
    ids=["a secret", "a secret, mixed hosts", "no secret", "no secret, five bytes"],
)
def test_who_frees_the_port(secret: bytes, is_mixed: bool, words: bytes, stays: bool) -> None:
    assert asyncio.run(port_stays_open(secret, is_mixed, words, 4)) is stays
