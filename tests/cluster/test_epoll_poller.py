"""Many sockets behind one: each is told what is its own, and none what comes after its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import pytest

from allaboard.cluster.transport.epoll_poller import EpollPoller
from allaboard.cluster.transport.stream import Stream

MUCH = 4 << 20
"""Bytes: more than a pair of sockets holds."""


class End:
    """One end of a pair with a `Stream` on it, and what became of it."""

    made: ClassVar[list[End]] = []

    def __init__(self, ears: EpollPoller) -> None:
        self.made.append(self)
        self.other, mine = socket.socketpair()
        self.other.setblocking(False)
        self.heard: list[bytes] = []
        self.ended = 0
        self.stream = Stream(mine, self._hear, self._end, ears)

    def _hear(self, data: bytes) -> None:
        self.heard.append(data)

    def _end(self) -> None:
        self.ended += 1


def _within(work: Callable[[EpollPoller], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        try:
            async with asyncio.timeout(20):
                await work(EpollPoller())
        finally:
            for end in End.made:
                end.other.close()
                end.stream.abort()
            End.made.clear()

    asyncio.run(bounded())


async def _until(true: Callable[[], object]) -> None:
    while not true():
        await asyncio.sleep(0)


def test_each_hears_its_own() -> None:
    async def work(ears: EpollPoller) -> None:
        ends = [End(ears) for _ in range(1000)]
        for number, end in enumerate(ends):
            end.other.send(b"%d" % number)
        await _until(lambda: all(e.heard for e in ends))
        assert [e.heard for e in ends] == [[b"%d" % n] for n in range(1000)]
        for end in ends:
            end.other.close()
        await _until(lambda: all(e.ended for e in ends))
        assert not any(e.stream.is_open for e in ends)

    _within(work)


def test_who_reads_late_gets_all_of_it() -> None:
    async def work(ears: EpollPoller) -> None:
        end = End(ears)
        end.stream.write(bytes(MUCH))
        assert end.stream.unsent_bytes
        end.stream.close()  # once everything is sent
        got = 0
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(end.other, 1 << 20):
            got += len(data)
        assert (got, end.ended) == (MUCH, 0)

    _within(work)


@pytest.mark.parametrize("closing", [False, True])
def test_who_goes_without_reading_is_let_go(closing: bool) -> None:
    async def work(ears: EpollPoller) -> None:
        end = End(ears)
        end.stream.write(bytes(MUCH))
        if closing:
            end.stream.close()
        end.other.close()
        await _until(lambda: not end.stream.unsent_bytes)
        assert end.ended == (not closing)

    _within(work)


def test_one_ends_another_in_its_turn() -> None:
    async def work(ears: EpollPoller) -> None:
        first, second = End(ears), End(ears)
        first.stream._on_data = lambda data: second.stream.close()
        second.stream._on_data = lambda data: first.stream.close()
        first.other.send(b"a")
        second.other.send(b"b")
        await _until(lambda: not (first.stream.is_open and second.stream.is_open))
        assert first.stream.is_open != second.stream.is_open

    _within(work)


def test_a_fault_in_one_does_not_silence_the_others() -> None:
    async def work(ears: EpollPoller) -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, what: told.append(what))
        first, second = End(ears), End(ears)
        first.stream._on_data = lambda data: 1 / 0  # type: ignore[assignment,return-value]
        first.other.send(b"a")
        second.other.send(b"b")
        await _until(lambda: second.heard and told)

    _within(work)


def test_a_held_word_goes_with_the_next_one() -> None:
    async def work(ears: EpollPoller) -> None:
        end = End(ears)
        end.stream.write_soon(b"welcome, ")
        end.stream.write(b"try these")
        assert end.other.recv(100) == b"welcome, try these"
        await asyncio.sleep(0)
        with pytest.raises(BlockingIOError):
            end.other.recv(100)

    _within(work)


def test_a_held_word_goes_out_by_itself() -> None:
    async def work(ears: EpollPoller) -> None:
        end = End(ears)
        end.stream.write_soon(b"welcome")
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(end.other, 100) == b"welcome"

    _within(work)


def test_a_held_word_is_said_before_the_end() -> None:
    async def work(ears: EpollPoller) -> None:
        end = End(ears)
        end.stream.write_soon(b"welcome")
        end.stream.close()
        assert end.other.recv(100) == b"welcome"

    _within(work)


def test_what_was_said_last_arrives_though_more_had_come() -> None:
    async def work(ears: EpollPoller) -> None:
        left, right = _pair()
        stream = Stream(left, lambda data: None, lambda: None, ears)
        right.send(b"what nobody reads any more")
        stream.write(b"the end")
        stream.close()
        right.send(b"and more")  # as whoever has not read yet does
        assert right.recv(100) == b"the end"
        right.close()

    _within(work)


def _pair() -> tuple[socket.socket, socket.socket]:
    """Over TCP, which resets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    other.setblocking(True)
    return one, other
