"""What is known of other hosts: who came, who tried whom, who knocked. Pure but for its memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from allaboard.coordinator.events import (
    AgentGone,
    AgentHere,
    Called,
    Event,
    Knocked,
    LinksTried,
    PortHeld,
    RoleTaken,
    TryLinks,
)
from allaboard.facts import Answer, Call, Declared, Holder, Knock, Link
from allaboard.rollcall.roll import Roll
from allaboard.rollcall.schedule import targets

PATIENCE = 9.0
"""Seconds for the trials of all links: three parts of three seconds each at the most."""
KNOCKS = 64
"""Different strangers that are remembered."""


Target = tuple[str, str]
"""A host's name, and the address where it is tried."""


class Crossing:
    """The state of one meeting."""

    def __init__(self, host: str, joined: bool) -> None:
        self.host = host
        self.joined = joined
        self.leads = False
        self.call: Call | None = None
        self.holder: Holder | None = None
        self.agents: dict[int, AgentHere] = {}
        self.links: list[Link] = []
        self.awaited: set[int] = set()
        self.asked_at: float | None = None
        self.plain: Knock | None = None
        self.told_plain = False
        self.reported = False
        self._targets: dict[int, tuple[Target, ...]] = {}
        self._serving: set[str] = set()
        self._knocks: dict[tuple[str, str], Knock] = {}

    def take(self, event: Event) -> None:
        match event:
            case RoleTaken():
                self.leads = event.leads
                if not event.leads:
                    self.agents.clear()
                    self.links.clear()
                    self.awaited.clear()
                    self.asked_at = None
            case AgentHere():
                self.agents[event.agent] = event
            case AgentGone():
                self.awaited.discard(event.agent)
                self.agents.pop(event.agent, None)
            case Called():
                self.call = event.call
            case LinksTried():
                self.awaited.discard(event.agent)
                self.links += [k for k in event.links if not self._serves(k)]
                self.links += self._worked(event)
            case PortHeld():
                self.holder = event.holder
            case Knocked():
                self._knocked(event)

    def _knocked(self, event: Knocked) -> None:
        knock = event.knock
        if event.member:
            self.plain = self.plain or knock
            return
        known = self._knocks.get((knock.peer, knock.kind))
        if known is not None:
            knock = msgspec.structs.replace(known, times=known.times + 1)
        if known is not None or len(self._knocks) < KNOCKS:
            self._knocks[(knock.peer, knock.kind)] = knock

    def _worked(self, event: LinksTried) -> Iterator[Link]:
        """Its links that work, by what it was asked for."""
        targets = self._targets.pop(event.agent, ())
        source = self.agents.get(event.agent)
        if source is None:
            return
        for index, seconds, rate in event.worked:
            if 0 <= index < len(targets):
                host, address = targets[index]
                yield Link(
                    source=source.host,
                    target=host,
                    address=address,
                    answer=Answer.ABOARD,
                    seconds=seconds,
                    rate=rate,
                )

    def _serves(self, link: Link) -> bool:
        """Whether it met a task's own server, which was not held and is up, or comes up now."""
        return link.address in self._serving and link.answer in (Answer.GRPC, Answer.REFUSED)

    def facts(self) -> dict[str, Any]:
        """The fields of a JobView that are about other hosts."""
        return {
            "joined": self.joined,
            "leads": self.leads,
            "call": self.call,
            "links": () if self.awaited else tuple(self.links),  # judged as a whole
            "knocks": tuple(self._knocks.values()),
            "holder": self.holder,
            "clocks": {a.host: a.ahead for a in self.agents.values() if a.agent},
        }

    @property
    def waved_on(self) -> str:
        """Why the gate is open although the roll call is not complete; "" where it is not.

        A framework's own client or server means a host without allaboard: it must not be kept waiting.
        """
        if self.plain is not None:
            return f"{self.plain.peer} runs without allaboard ({self.plain.said})"
        call = self.call
        if call is not None and not self.leads and call.answer in (Answer.STORE, Answer.GRPC):
            return "" if self.stale else f"the framework's own rendezvous is open at {call.address}"
        return ""

    @property
    def stale(self) -> bool:
        """Whether the store at the meeting place belongs to a job that is complete without us."""
        call = self.call
        return call is not None and call.answer is Answer.STORE and 0 < self.size <= call.joined

    size = 0
    """The world size that our own member declared."""

    def trials(self, now: float, roll: Roll) -> Iterator[TryLinks]:
        """Asks for the trials of the links of a complete roll, once."""
        if self.asked_at is not None:
            return
        self.asked_at = now
        for command in self._asked(roll):
            before = self._targets.get(command.agent, ())
            self._targets[command.agent] = before + command.targets
        self.awaited = set(self._targets)
        yield from (TryLinks(agent=a, targets=t) for a, t in self._targets.items())

    def tried(self, now: float) -> bool:
        """Whether all links have been tried, or have had their time."""
        if not self.joined or not self.leads:
            return True
        if self.asked_at is None:
            return False
        if now - self.asked_at >= PATIENCE:
            self.awaited.clear()
        return not self.awaited

    def _asked(self, roll: Roll) -> Iterator[TryLinks]:
        first = roll.here[0].declared
        if first is not None and first.cluster:
            yield from self._by_task(roll)
            return
        hosts: dict[str, AgentHere] = {}
        for agent in sorted(self.agents.values(), key=lambda a: (a.rank, a.agent)):
            hosts.setdefault(agent.host, agent)
        order = [(a.host, a.data) for a in hosts.values()]
        for index, agent in enumerate(hosts.values()):
            chosen = tuple(order[i] for i in targets(index, len(order)))
            if chosen:
                yield TryLinks(agent=agent.agent, targets=chosen)

    def _by_task(self, roll: Roll) -> Iterator[TryLinks]:
        """TensorFlow: the tasks' own addresses, as this very task was told them. Who is not held serves
        there already, without us."""
        order = sorted(roll.here, key=lambda m: m.who.rank)
        for index, member in enumerate(order):
            told = member.declared
            assert told is not None
            wanted = []
            for i in targets(index, len(order)):
                other = order[i].who
                address = told.cluster.get(f"{other.job}:{other.index}")
                if address is None or other.host == member.who.host or not _meet(told, other.job):
                    continue
                wanted.append((other.host, address))
                theirs = order[i].declared
                if theirs is not None and not theirs.hold:
                    self._serving.add(address)
            if wanted:
                yield TryLinks(agent=member.key >> 32, targets=tuple(wanted))


def _meet(one: Declared, other: str) -> bool:
    """Whether the two exchange anything: with parameter servers, workers have nothing to say to each
    other."""
    servers = any(task.startswith("ps:") for task in one.cluster)
    return not servers or {one.job, other} != {"worker"}
