"""The host where all meet: takes members in, passes on what they tell, sends them what is decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from allaboard.coordinator.events import (
    AgentGone,
    AgentHere,
    Announce,
    Answered,
    Command,
    Compare,
    End,
    Event,
    Exchanged,
    Exited,
    Knocked,
    LetThrough,
    LinksTried,
    Look,
    Looked,
    Measured,
    Note,
    Seen,
    Trace,
    TryLinks,
    key,
    split_key,
)
from allaboard.facts import Knock
from allaboard.meeting import wire
from allaboard.meeting.listener import Connection, Listener
from allaboard.meeting.tls import Tls
from allaboard.meeting.wire import Orders, Release, Released, Told, Tried, TryThese, Word

CLOSING = 1.0
"""Seconds that members get to close their ports before the first is let through."""
MANY, GATHER = 128, 0.02
"""With so many members here what they tell is gathered for so long (s), and judged at once."""
CLIENTS = {"torch": "store", "tensorflow": "grpc", "jax": "grpc"}
"""How a framework's own client knocks."""


def knocked(framework: str, peer: str, kind: str, said: str) -> Knocked:
    """Somebody came who is not of the roll call; a client of this framework is a member's."""
    knock = Knock(peer=peer, kind=kind, said=said, at=time.monotonic())
    return Knocked(knock=knock, member=kind == CLIENTS.get(framework))


class Leader:
    """``events`` collects what came from other hosts; ``framework`` says whose clients are ours."""

    def __init__(
        self,
        job: str,
        secret: bytes,
        framework: str,
        wake: Callable[[], None],
        tls: Tls | None = None,
    ) -> None:
        self.listener = Listener(job, secret, self._aboard, self._said, self._knocked, tls)
        self.framework = framework
        self.events: list[Event] = []
        self._wake = wake
        self._waking: asyncio.TimerHandle | None = None
        self._members: dict[int, Connection] = {}
        self._known: set[int] = set()
        self._held: list[LetThrough] = []
        self._releasing: dict[int, Connection] | None = None
        self._released_by = 0.0
        self.met = 0
        """How many other agents have been here."""
        self._last_words: list[Command] = []
        self._word = b""
        self._ended = False
        self.ports_elsewhere = False
        """Whether members listen on the framework's ports too, and must close them first."""

    @property
    def here(self) -> int:
        """How many other agents are here now."""
        return len(self._members)

    def route(self, command: Command) -> list[Command]:
        """Sends on what is meant for other hosts; returns what is to be done here."""
        match command:
            case LetThrough():
                return self._let_through(command)
            case Look():
                return self._look(command)
            case Compare():
                return self._compare(command)
            case TryLinks():
                if command.agent == 0:
                    return [command]
                self._send(command.agent, TryThese(targets=command.targets))
                return []
            case Announce() | Note() | End():
                self._ended = self._ended or isinstance(command, End)
                if not isinstance(command, Note):
                    self._last_words.append(command)
                self._word += wire.frame(Orders(commands=(command,)))
                return [command]
        return [command]

    def due(self, now: float) -> list[Command]:
        """Tells all what they are told alike, and those who stand at the gate that it opens, once every
        port that a framework will bind is free. To be called after `route`."""
        word, self._word = self._word, b""
        here: list[Command] = []
        opens: dict[int, bytes] = {}
        if self._releasing is not None and not (self._releasing and now < self._released_by):
            self._releasing = {}
            for command in self._held:
                agent, pid = split_key(command.pid)
                if agent == 0:
                    here.append(command)
                else:
                    if agent in self._members:
                        self._members[agent].stream.patient()
                    order = msgspec.structs.replace(command, pid=pid)
                    frame = wire.frame(Orders(commands=(order,)))
                    opens[agent] = opens.get(agent, b"") + frame
            self._held.clear()
        for number, member in list(self._members.items()) if word or opens else ():
            frames = word + opens.get(number, b"")
            if frames:
                member.pass_on(frames)
        return here

    def close(self) -> None:
        self.listener.close()
        if self._waking is not None:
            self._waking.cancel()

    def _let_through(self, command: LetThrough) -> list[Command]:
        self._held.append(command)
        if self._releasing is None:
            # The port first, then the word: a framework's client that comes early is refused and
            # tries again, one that lands in our backlog would be reset.
            self.listener.release()
            self._releasing = dict(self._members) if self.ports_elsewhere else {}
            self._released_by = time.monotonic() + CLOSING
            for number in self._releasing:
                self._send(number, Release())
        return []

    def _look(self, command: Look) -> list[Command]:
        wanted = _by_agent(command.pids)
        for agent, pids in wanted.items():
            if agent:
                self._send(agent, Orders(commands=(Look(pids=pids),)))
        return [Look(pids=wanted[0])] if 0 in wanted else []

    def _compare(self, command: Compare) -> list[Command]:
        here: list[Command] = []
        for agent, pids in _by_agent(command.pids).items():
            order = msgspec.structs.replace(command, pids=pids)
            if agent:
                self._send(agent, Orders(commands=(order,)))
            else:
                here.append(order)
        return here

    def _send(self, number: int, word: Word) -> None:
        member = self._members.get(number)
        if member is not None:
            member.send(word)

    def _aboard(self, member: Connection) -> None:
        self._members[member.number] = member
        self.met = max(self.met, member.number)
        if self._ended:  # it is late; the verdict is for all
            member.send(Orders(commands=tuple(self._last_words)))
        hello = member.hello
        self.events.append(
            AgentHere(
                agent=member.number,
                host=hello.host,
                data=hello.data,
                rank=hello.rank,
                ahead=member.wall_offset,
            )
        )
        self._stir()

    def _said(self, member: Connection, word: Word | None) -> None:
        match word:
            case None:
                if self._members.get(member.number) is not member:
                    return  # it has come again over another stream
                self._members.pop(member.number, None)
                if self._releasing is not None:
                    self._releasing.pop(member.number, None)
                self.events.append(AgentGone(agent=member.number, at=time.monotonic()))
            case Told():
                member.heard(word.mono)
                self.events += [e for t in word.events if (e := _ours(t, member)) is not None]
            case Tried():
                tried = LinksTried(agent=member.number, links=word.links, worked=word.worked)
                self.events.append(tried)
            case Released():
                if self._releasing is not None:
                    self._releasing.pop(member.number, None)
        self._stir()

    def _stir(self) -> None:
        """There is something to judge."""
        if len(self._members) < MANY:
            self._wake()
        elif self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(GATHER, self._stirred)

    def _stirred(self) -> None:
        self._waking = None
        self._wake()

    def _knocked(self, peer: str, kind: str, said: str) -> None:
        event = knocked(self.framework, peer, kind, said)
        self.events.append(event)
        if event.member:
            self.listener.release()  # at once: we must never be the silent listener
        self._wake()


def _by_agent(called: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """The pids of each agent."""
    wanted: dict[int, tuple[int, ...]] = {}
    for agent, pid in map(split_key, called):
        wanted[agent] = (*wanted.get(agent, ()), pid)
    return wanted


def _ours(event: Event, member: Connection) -> Event | None:
    """An event of another host, with our clock and our name for the process; None for what is no
    business of ours."""
    late = member.offset
    match event:
        case Seen():
            box = event.box
            if box is not None:
                op, raised = box.op, box.raised
                box = msgspec.structs.replace(
                    box,
                    phase_since=box.phase_since + late,
                    step_at=box.step_at + late,
                    op=msgspec.structs.replace(op, since=op.since + late) if op else None,
                    raised=msgspec.structs.replace(raised, at=raised.at + late) if raised else None,
                    groups=tuple(
                        msgspec.structs.replace(g, since=g.since + late) for g in box.groups
                    ),
                )
            changes: dict[str, object] = {"box": box, "host": member.hello.host}
        case Exited() | Looked() | Exchanged():
            changes = {}
        case Measured():
            return msgspec.structs.replace(event, at=event.at + late, host=member.hello.host)
        case Answered() | Trace():
            return msgspec.structs.replace(event, pid=key(member.number, event.pid))
        case _:
            return None
    called = key(member.number, event.pid)
    changed = msgspec.structs.replace(event, pid=called, at=event.at + late, **changes)
    if isinstance(changed, Seen):
        return msgspec.structs.replace(changed, worker=(member.number << 12) + event.worker)  # type: ignore[union-attr]
    return changed
