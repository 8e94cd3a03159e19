"""What callers that have proved nothing may have us keep: one incomplete Hello each, of so many callers."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable

import pytest

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.listener import MAX_WAITING_CALLERS, Listener
from allaboard.facts import Knock

STRANGERS = 200


class Door:
    """A listener of a job with a secret, and whom it turned away."""

    def __init__(self) -> None:
        self.knocks: list[Knock] = []
        self.listener = Listener(
            "job", b"secret", lambda _: None, lambda *_: None, self.knocks.append
        )

    @property
    def kept_bytes(self) -> int:
        return sum(len(caller._received) for caller in self.listener._waiting)


def at_the_door(work: Callable[[Door], Awaitable[None]], said: bytes) -> None:
    """So many strangers send the same, and stay; then the work is done."""

    async def main() -> None:
        door = Door()
        await door.listener.open_port(0, "127.0.0.1")
        port = door.listener.port
        came = [await asyncio.open_connection("127.0.0.1", port) for _ in range(STRANGERS)]
        try:
            for _, writer in came:
                writer.write(wire.GREETING + said)
            await work(door)
        finally:
            for _, writer in came:
                writer.close()
            door.listener.close()

    asyncio.run(main())


async def settled(door: Door, is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.01)


def test_an_incomplete_hello_is_all_that_is_kept() -> None:
    said = wire.LENGTH_PREFIX.pack(wire.MAX_HELLO_BYTES) + bytes(wire.MAX_HELLO_BYTES - 1)

    async def work(door: Door) -> None:
        await settled(door, lambda: door.kept_bytes == STRANGERS * len(said))
        assert len(said) < wire.MAX_HELLO_BYTES + 4

    at_the_door(work, said)


def test_whoever_announces_more_is_turned_away_with_what_it_sent() -> None:
    said = wire.LENGTH_PREFIX.pack(65_536) + bytes(65_000)

    async def work(door: Door) -> None:
        await settled(door, lambda: len(door.knocks) == STRANGERS)
        assert door.kept_bytes == 0 and not door.listener._waiting

    at_the_door(work, said)


@pytest.mark.parametrize("limit", [2_000_000, 20_000, 1_000])
def test_the_number_of_callers_is_bounded_whatever_the_limit_of_files(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    most = Door().listener.max_waiting_callers
    assert 64 <= most <= MAX_WAITING_CALLERS
    assert most * (wire.MAX_HELLO_BYTES + 4) <= 65 << 20
