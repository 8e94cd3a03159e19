"""What a host knows goes with its name, and is told once."""

from __future__ import annotations

import asyncio

import pytest

from allaboard.cluster.follower import Follower
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.listener import Listener
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.wire import HostEvents, Message
from allaboard.facts import Knock
from allaboard.protocol.events import Event, MemberFactsReported

MUCH = "x" * 100_000
"""A fact that takes many segments."""


class Meeting:
    """A listener of job ``job``, what it was told, and a follower that goes there."""

    def __init__(self, job: str = "job") -> None:
        self.told: list[list[Event]] = []
        self.knocks: list[str] = []
        self.listener = Listener(job, b"secret", lambda _: None, self._said, self._knocked)
        self.address = ""
        self.changed = asyncio.Event()
        who = Identity("job", b"secret", "h1", 1, "127.0.0.1:1", "session")
        self.follower = Follower(self._way, lambda: who, lambda: None, self.changed.set)

    async def _way(self) -> str:
        return self.address

    def _said(self, member: MemberConnection, word: Message | None) -> None:
        if isinstance(word, HostEvents):
            self.told.append(list(word.events))
            self.changed.set()

    def _knocked(self, knock: Knock) -> None:
        self.knocks.append(knock.kind)
        self.changed.set()

    async def __aenter__(self) -> Meeting:
        await self.listener.open_port(0, "127.0.0.1")
        self.address = f"127.0.0.1:{self.listener.port}"
        self.running = asyncio.ensure_future(self.follower.run_calls())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.follower.close()
        self.running.cancel()
        self.listener.close()
        await asyncio.sleep(0)


def _fact(pid: int, text: str = "1") -> MemberFactsReported:
    return MemberFactsReported(pid=pid, facts={"count CPUs": text})


def test_it_is_told_with_the_name_and_not_again() -> None:
    async def work() -> None:
        first, second = _fact(1, MUCH), _fact(2)
        meeting = Meeting()
        meeting.follower.send_events(0.0, [first])
        async with meeting, asyncio.timeout(20):
            while not (meeting.told and meeting.follower.is_linked):
                await meeting.changed.wait()
                meeting.changed.clear()
            meeting.follower.send_events(1.0, [second])
            while len(meeting.told) < 2:
                await meeting.changed.wait()
                meeting.changed.clear()
        assert meeting.told == [[first], [second]]

    asyncio.run(work())


def test_what_happened_while_it_went_in_is_told_after() -> None:
    async def work() -> None:
        first, second = _fact(1), _fact(1, "2")
        meeting = Meeting()
        meeting.follower.send_events(0.0, [first])
        async with meeting, asyncio.timeout(20):
            while not meeting.told:
                await meeting.changed.wait()
                meeting.changed.clear()
            assert not meeting.follower.is_linked  # the welcome is on its way
            meeting.follower.send_events(1.0, [second])
            while not meeting.follower.is_linked:
                await asyncio.sleep(0)
            meeting.follower.send_events(1.1, [])
            while len(meeting.told) < 2:
                await meeting.changed.wait()
                meeting.changed.clear()
        assert meeting.told == [[first], [second]]

    asyncio.run(work())


@pytest.mark.parametrize("_", range(5))
def test_a_refusal_is_heard_however_much_was_told_with_the_name(_: int) -> None:
    async def work() -> None:
        meeting = Meeting("another")
        meeting.follower.send_events(0.0, [_fact(n, MUCH) for n in range(20)])
        async with meeting, asyncio.timeout(20):
            while not (meeting.knocks and meeting.follower.events):
                await asyncio.sleep(0)
        assert set(meeting.knocks) == {"other-job"} and not meeting.told
        said = [e.call.said for e in meeting.follower.events if hasattr(e, "call")]
        assert all("belongs to job job, this is another" in s for s in said), said

    asyncio.run(work())
