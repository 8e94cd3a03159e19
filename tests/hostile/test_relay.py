"""A real relay between a real leader and a real follower of a job with a secret: it can delay and cut, and
nothing that it adds, repeats, reorders or shortens is obeyed. The connection is closed, and named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from allaboard.cluster.follower import Follower
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.wire import HostEvents, LeaderCommands
from allaboard.facts import Outcome
from allaboard.protocol.commands import EndJob, ShowNote
from allaboard.protocol.events import MemberFactsReported, ProcessExited
from rally import SECRET, Rally
from relay import HungUp, Relay, Tamper

END = wire.encode_frame(
    LeaderCommands(commands=(EndJob(outcome=Outcome.FAILED, reason="evil", final=True),))
)
DEATH = wire.encode_frame(
    HostEvents(events=(ProcessExited(pid=7, code=1, exited_at=1.0),), mono=1.0)
)


def sealed_by_nobody(frame: bytes) -> bytes:
    return wire.LENGTH_PREFIX.pack(len(frame)) + bytes(16) + frame


TAMPERED: dict[str, tuple[Tamper, list[str]]] = {
    "a plain frame is added": (lambda held: [*held, END], ["one"]),
    "a record is added": (lambda held: [*held, sealed_by_nobody(END)], ["one"]),
    "a record is put first": (lambda held: [sealed_by_nobody(END), *held], []),
    "repeated": (lambda held: [*held, *held], ["one"]),
    "swapped": (lambda held: held[::-1] if len(held) == 2 else None, []),
    "left out": (lambda held: held[1:] if len(held) == 2 else None, []),
    "shortened": (lambda held: [held[0][:-2], *held[1:]] if len(held) == 2 else None, []),
    "a byte is changed": (lambda held: [held[0][:-3] + b"X" + held[0][-2:]], []),
}
"""What the relay does to the records with the notes "one" and "two", and which notes may be obeyed."""


class Road:
    """A leader, a follower, and the relay between them."""

    def __init__(self, rally: Rally, relay: Relay) -> None:
        async def address() -> str:
            return relay.address

        who = Identity("job=1", SECRET, "h1", 1, "127.0.0.1:1", "session of 1")
        self.rally, self.relay = rally, relay
        self.follower = Follower(address, lambda: who, lambda: None, lambda: None)
        facts = MemberFactsReported(pid=7, facts={"count CPUs": "1"})
        self.follower.send_events(time.monotonic(), [rally.seen(1, 7), facts])

    def say(self, *texts: str) -> None:
        """The leader says these notes, each in a record of its own."""
        for text in texts:
            self.rally.leader.send_to_all(ShowNote(text=text))

    @property
    def notes(self) -> list[str]:
        return [c.text for c in self.follower.commands if isinstance(c, ShowNote)]

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not what():
                await asyncio.sleep(0.01)

    async def is_linked(self) -> None:
        await self.until(lambda: self.follower.is_linked and self.rally.leader.connected_count)
        await self.until(lambda: "h1" in self.rally.agents_elsewhere)


def on_the_road(work: Callable[[Road], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Rally(3, secret=SECRET) as rally, Relay(rally.port) as relay:
            road = Road(rally, relay)
            running = asyncio.ensure_future(road.follower.run_calls())
            try:
                await road.is_linked()
                await work(road)
            finally:
                road.follower.close()
                running.cancel()

    asyncio.run(main())


def test_an_honest_relay_changes_nothing() -> None:
    async def work(road: Road) -> None:
        road.say("one", "two")
        await road.until(lambda: road.notes == ["one", "two"])
        road.follower.send_events(time.monotonic(), [road.rally.seen(1, 7)])
        await asyncio.sleep(0.2)
        assert road.follower.is_linked and road.relay.connections == 1
        assert not road.rally.told("NET020")

    on_the_road(work)


@pytest.mark.parametrize("name", TAMPERED)
def test_nothing_that_the_leader_did_not_say_is_obeyed(name: str) -> None:
    how, obeyed = TAMPERED[name]

    async def work(road: Road) -> None:
        road.relay.tamper("to the host", how)
        road.say("one", "two")
        note = f"a message from the leader ({road.relay.address}) did not carry the job's proof"
        await road.until(lambda: any(n.startswith(note) for n in road.notes))
        assert [n for n in road.notes if not n.startswith(note)] in (obeyed, [])
        assert not any(isinstance(c, EndJob) for c in road.follower.commands)
        # It comes again, over another connection, and where all meet it is known, too.
        await road.until(lambda: road.relay.connections > 1)
        await road.is_linked()
        assert await road.rally.until("NET020") == [
            f"a message from {road.relay.address} on the connection of h1 did not carry the job's proof"
        ]
        road.say("three")
        await road.until(lambda: road.notes[-1] == "three")

    on_the_road(work)


@pytest.mark.parametrize("forged", [DEATH, sealed_by_nobody(DEATH)], ids=["frame", "record"])
def test_nothing_that_the_host_did_not_say_is_believed(forged: bytes) -> None:
    async def work(road: Road) -> None:
        road.relay.tamper("to the leader", lambda held: [*held, forged])
        for text in "12":  # the second one completes what was added, if that announces more bytes
            fact = MemberFactsReported(pid=7, facts={"count CPUs": text})
            road.follower.send_events(time.monotonic(), [fact])
        assert await road.rally.until("NET020") == [
            "a message from 127.0.0.1 on the connection of h1 did not carry the job's proof"
        ]
        await road.until(lambda: road.relay.connections > 1)
        await road.is_linked()  # it has done nothing wrong, and is let in again
        assert not road.rally.told("JOIN003")
        (note,) = road.rally.leader.notes
        assert note.startswith("a message from h1 (127.0.0.1) did not carry the job's proof")

    on_the_road(work)


def test_what_is_cut_off_in_the_middle_is_not_obeyed() -> None:
    async def work(road: Road) -> None:
        def cut(held: list[bytes]) -> list[bytes]:
            raise HungUp(held[0][:-2])

        road.relay.tamper("to the host", cut)
        road.say("one")
        await road.until(lambda: road.relay.connections > 1)
        await road.is_linked()
        assert road.notes == []

    on_the_road(work)
