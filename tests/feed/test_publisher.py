"""The feed over real sockets of this host: who may read it, and that no reader holds it up."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from allaboard.facts import Address
from allaboard.facts.samples import sample_job, sample_member
from allaboard.feed.build_snapshot import RunFacts, build_snapshot
from allaboard.feed.connection import FeedConnection, connect_to_folder, connect_to_port
from allaboard.feed.messages import (
    Course,
    FeedError,
    Hello,
    Message,
    Note,
    SnapshotMessage,
    Stacks,
    StacksRequest,
    encode_line,
)
from allaboard.feed.publisher import MAX_CLIENTS, FeedPublisher
from allaboard.feed.socket_path import SOCKET_NAME, short_socket_path
from certificates import authority, signed

LOOPBACK = Address("127.0.0.1", "0")


def snapshot_message(name: str, ranks: int = 2) -> SnapshotMessage:
    view = sample_job(*(sample_member(n) for n in range(ranks)))
    return SnapshotMessage(snapshot=build_snapshot(view, RunFacts(job=name), (), name))


class Bench:
    """A publisher whose requests are answered at once."""

    def __init__(self) -> None:
        self.joined = 0
        self.history: list[Message] = [Course(points=())]
        self.publisher = FeedPublisher(
            Hello(job="j", host="a"), lambda: self.history, self._join, self._answer, time.monotonic
        )

    def _join(self) -> None:
        self.joined += 1

    def _answer(self, request: StacksRequest, answer: Callable[[Message], None]) -> None:
        answer(Stacks(id=request.id, sampled_at="t", tree=(), sampled=3))


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


async def receive(connection: FeedConnection, count: int) -> list[Message]:
    messages: list[Message] = []
    async for message in connection.messages():
        messages.append(message)
        if len(messages) == count:
            break
    return messages


def test_a_client_gets_the_history_and_what_follows(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.history += [Note(noted_at="t", text="before"), snapshot_message("first")]
        folder = tmp_path / ("deep" * 30) / ("er" * 60)  # longer than a socket's path may be
        folder.mkdir(parents=True)
        await bench.publisher.open_socket(folder)
        assert (folder / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
        connection = await connect_to_folder(folder)
        assert (connection.hello.job, connection.hello.host) == ("j", "a")
        assert await receive(connection, 3) == bench.history
        bench.publisher.publish(snapshot_message("second"))
        (message,) = await receive(connection, 1)
        assert isinstance(message, SnapshotMessage)
        assert message.snapshot.run.job == "second"
        connection.request_stacks(9)
        (answer,) = await receive(connection, 1)
        assert isinstance(answer, Stacks)
        assert (answer.id, answer.sampled) == (9, 3)
        await bench.publisher.close()
        assert await receive(connection, 1) == []
        assert not (folder / SOCKET_NAME).exists()
        connection.close()

    run(scenario())


def test_a_frozen_client_costs_nothing_and_then_gets_the_newest_snapshot(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.publisher.open_socket(tmp_path)
        frozen = socket.socket(socket.AF_UNIX)
        with short_socket_path(tmp_path) as path:
            frozen.connect(path)
        while not bench.publisher.has_clients:
            await asyncio.sleep(0.01)
        lines = [encode_line(snapshot_message(str(n), ranks=200)) for n in range(100)]
        begun_at = time.monotonic()
        for line in lines:
            bench.publisher.publish_line(line, True)
        bench.publisher.publish(Note(noted_at="t", text="kept"))
        assert time.monotonic() - begun_at < 1.0
        (client,) = bench.publisher._clients
        assert client.blocked_since is not None
        assert client.backlog.dropped_snapshots > 80
        frozen.setblocking(False)
        received = b""
        while lines[-1] not in received:
            received += await asyncio.get_running_loop().sock_recv(frozen, 1 << 20)
        assert b'"kept"' in received
        assert received.count(b'"kind":"snapshot"') < 20
        frozen.close()
        await bench.publisher.close()

    run(scenario())


def test_a_client_that_never_reads_is_dropped_after_a_while(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench()
        now = [0.0]
        bench.publisher._now = lambda: now[0]
        await bench.publisher.open_socket(tmp_path)
        frozen = socket.socket(socket.AF_UNIX)
        with short_socket_path(tmp_path) as path:
            frozen.connect(path)
        while not bench.publisher.has_clients:
            await asyncio.sleep(0.01)
        line = encode_line(snapshot_message("s", ranks=2000))
        for _ in range(3):
            bench.publisher.publish_line(line, True)
        now[0] = 59.0
        bench.publisher.publish_line(line, True)
        assert bench.publisher.has_clients
        now[0] = 61.0
        bench.publisher.publish_line(line, True)
        assert not bench.publisher.has_clients
        frozen.close()
        await bench.publisher.close()

    run(scenario())


def test_only_those_who_know_the_secret_read_a_port() -> None:
    async def scenario() -> None:
        bench = Bench()
        host, port = await bench.publisher.open_port(LOOPBACK, b"secret", None)
        address = Address(host, str(port))
        connection = await connect_to_port(address, b"secret", None)
        assert await receive(connection, 1) == bench.history
        with pytest.raises(FeedError, match=r"give it with --secret-file"):
            await connect_to_port(address, b"", None)
        with pytest.raises(
            FeedError, match=r"refuses this client: the secret is not that of the job"
        ):
            await connect_to_port(address, b"guess", None)
        connection.close()
        await bench.publisher.close()

    run(scenario())


def test_a_request_before_the_login_is_refused() -> None:
    async def scenario() -> None:
        bench = Bench()
        _, port = await bench.publisher.open_port(LOOPBACK, b"secret", None)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(encode_line(StacksRequest(id=1)))
        answer = await reader.read()
        assert b"log in first" in answer
        assert b'"kind":"stacks"' not in answer
        assert not bench.publisher.has_clients
        writer.close()
        await bench.publisher.close()

    run(scenario())


def test_certificates_of_the_job_protect_a_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        ours, theirs = authority(tmp_path, "ours"), authority(tmp_path, "theirs")
        host_files, client_files = signed(tmp_path, "a", ours), signed(tmp_path, "b", ours)
        bench = Bench()
        context = host_files.make_context(server=True)
        host, port = await bench.publisher.open_port(LOOPBACK, b"", context)
        address = Address(host, str(port))
        connection = await connect_to_port(address, b"", client_files)
        assert await receive(connection, 1) == bench.history
        connection.close()
        with pytest.raises(FeedError, match=r"TLS failed|closed in the greeting"):
            await connect_to_port(address, b"", signed(tmp_path, "c", theirs))
        with pytest.raises(FeedError, match=r"closed in the greeting|give --tls-key"):
            await connect_to_port(address, b"", None)
        await bench.publisher.close()

    run(scenario())


@pytest.mark.parametrize(
    "request_bytes", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"x" * 100_000]
)
def test_what_is_no_request_is_refused(tmp_path: Path, request_bytes: bytes) -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.publisher.open_socket(tmp_path)
        with short_socket_path(tmp_path) as path:
            reader, writer = await asyncio.open_unix_connection(path)
        writer.write(request_bytes)
        assert b'"kind":"refused"' in await reader.read()
        assert not bench.publisher.has_clients
        writer.close()
        await bench.publisher.close()

    run(scenario())


def test_too_many_clients_are_told_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.publisher.open_socket(tmp_path)
        connections = [await connect_to_folder(tmp_path) for _ in range(MAX_CLIENTS)]
        late = await connect_to_folder(tmp_path)
        (message,) = await receive(late, 1)
        assert "close one of them" in str(message)
        for connection in [*connections, late]:
            connection.close()
        await bench.publisher.close()

    run(scenario())


def test_a_port_that_is_taken_is_an_os_error() -> None:
    async def scenario() -> None:
        bench = Bench()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            with pytest.raises(OSError, match="in use"):
                await bench.publisher.open_port(Address("127.0.0.1", port), b"s", None)

    run(scenario())


def test_a_folder_without_a_publisher_and_a_socket_left_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(FeedError, match="no feed is published here") as absent:
            await connect_to_folder(tmp_path)
        assert absent.value.is_absent
        bench = Bench()
        await bench.publisher.open_socket(tmp_path)
        for server in bench.publisher._servers:  # as an agent that is killed leaves it
            server.close()
        with pytest.raises(FeedError, match="no feed is published here"):
            await connect_to_folder(tmp_path)
        again = Bench()
        await again.publisher.open_socket(tmp_path)
        (await connect_to_folder(tmp_path)).close()
        await again.publisher.close()

    run(scenario())


def test_two_agents_with_one_folder_leave_each_other_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench, second = Bench(), Bench()
        await bench.publisher.open_socket(tmp_path)
        with pytest.raises(OSError, match="another agent publishes"):
            await second.publisher.open_socket(tmp_path)
        await second.publisher.close()
        (await connect_to_folder(tmp_path)).close()
        await bench.publisher.close()

    run(scenario())


def test_another_program_at_the_port_is_no_feed() -> None:
    async def scenario() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(FeedError, match="no message of a feed"):
            await connect_to_port(Address("127.0.0.1", str(port)), b"", None)
        server.close()

    run(scenario())


def test_a_feed_that_ends_in_mid_line_ends() -> None:
    async def scenario() -> None:
        note = encode_line(Note(noted_at="t", text="whole"))

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(encode_line(Hello()) + b'{"kind":"welcome"}\n' + note + note[:20])
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = await connect_to_port(Address("127.0.0.1", str(port)), b"", None)
        assert [str(m.text) for m in await receive(connection, 5) if isinstance(m, Note)] == [
            "whole"
        ]
        connection.close()
        server.close()

    run(scenario())


def test_a_client_that_goes_at_once_leaves_no_line_on_the_terminal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.history += [Note(noted_at="t", text=str(n)) for n in range(50)]
        await bench.publisher.open_socket(tmp_path)
        with socket.socket(socket.AF_UNIX) as client, short_socket_path(tmp_path) as path:
            client.connect(path)
        while not bench.joined:
            await asyncio.sleep(0)
        for n in range(50):
            bench.publisher.publish(Note(noted_at="t", text=str(n)))
        await asyncio.sleep(0.1)
        assert not bench.publisher.has_clients
        await bench.publisher.close()

    run(scenario())
    assert caplog.records == []
