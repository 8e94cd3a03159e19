"""What is known of other hosts: who came, who tried whom, who knocked. Pure but for its memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from allaboard.analysis.roll_call.link_probe_schedule import probe_targets, reverse_probes
from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.coordinator.trackers.link_probes import LinkProbes, Target
from allaboard.facts import Answer, Call, Declared, Holder, Knock, Link, Member, Phase
from allaboard.protocol.commands import ProbeLinks
from allaboard.protocol.events import (
    AgentConnected,
    AgentDisconnected,
    Event,
    LinksProbed,
    PortChecked,
    RendezvousProbed,
    RoleTaken,
    StrangerConnected,
)

PATIENCE = 9.0
"""Seconds for the trials of all links: twice four, where what fails is tried once more, and one to spare."""
KNOCKS = 64
"""Different strangers that are remembered."""


class MultiHostState:
    """The state of one meeting."""

    def __init__(self, host: str, joined: bool) -> None:
        self.host = host
        self.joined = joined
        self.leads = False
        self.meeting_place = ""
        self.rendezvous_call: Call | None = None
        self.port_holder: Holder | None = None
        self.agents: dict[int, AgentConnected] = {}
        self.link_probes = LinkProbes()
        self.probing_agents: set[int] = set()
        self.probes_asked_at: float | None = None
        self.plain_client: Knock | None = None
        self.told_plain = False
        self.reported = False
        self._reached: dict[str, tuple[int, str]] = {}
        """Host to its agent, and the address where others try it."""
        self._again: dict[int, tuple[Target, ...]] | None = None
        """The second round of trials: agent to whom it tries; None before the first is over."""
        self._serving: set[str] = set()
        """Addresses of servers that were not held, ..."""
        self._up: set[str] = set()
        """... and of those that were up for a while when they were to be tried."""
        self._early: dict[int, tuple[Target, ...]] | None = {}
        """Agent to the servers that refused it while they came up; None once these were asked again."""
        self._knocks: dict[tuple[str, str], Knock] = {}
        self._clocks: dict[str, float] | None = None

    def apply_event(self, event: Event) -> None:
        match event:
            case RoleTaken():
                self.leads, self.meeting_place = event.leads, event.place
                if not event.leads:
                    self._clocks = None
                    self.agents.clear()
                    self.link_probes.clear_results()
                    self.probing_agents.clear()
                    self._early = {}
                    self.probes_asked_at = None
            case AgentConnected():
                self.agents[event.agent] = event
                self._clocks = None
            case AgentDisconnected():
                self._clocks = None
                self.probing_agents.discard(event.agent)
                self.agents.pop(event.agent, None)
                self._look_back()
            case RendezvousProbed():
                self.rendezvous_call = event.call
            case LinksProbed():
                self.probing_agents.discard(event.agent)
                source = self.agents.get(event.agent)
                failed = [k for k in event.links if not self._serves(k)]
                early = [k for k in event.links if k.answer is Answer.REFUSED and k not in failed]
                if early and self._early is not None:
                    self._early[event.agent] = tuple((k.target, k.address) for k in early)
                self.link_probes.add_results(
                    event, source.host if source is not None else None, failed
                )
                self._look_back()
            case PortChecked():
                self.port_holder = event.holder
            case StrangerConnected():
                self._knocked(event)

    def _knocked(self, event: StrangerConnected) -> None:
        knock = event.knock
        if event.member:
            self.plain_client = self.plain_client or knock
            return
        known = self._knocks.get((knock.peer, knock.kind))
        if known is not None:
            # Who hangs up where TLS begins may say over another stream who it is.
            first = knock if knock.named and not known.named else known
            knock = msgspec.structs.replace(first, times=known.times + 1, at=known.at)
        if known is not None or len(self._knocks) < KNOCKS:
            self._knocks[(knock.peer, knock.kind)] = knock

    def note_opened_early(self, roll: RollCall) -> None:
        """These are let through before every link was tried: their ports are the framework's from now on."""
        told = (m.declared for m in roll.held)
        own = (t.cluster.get(f"{t.job}:{t.index}") for t in told if t is not None)
        self._serving.update(a for a in own if a is not None)

    def _serves(self, link: Link) -> bool:
        """Whether it met a task's own server, which was not held and is up, or comes up now. One that is up
        refuses nobody: a firewall does."""
        if link.answer is Answer.REFUSED:
            return link.address in self._serving - self._up
        return link.address in self._serving and link.answer is Answer.GRPC

    def view_fields(self) -> dict[str, Any]:
        """The fields of a JobView that are about other hosts."""
        if self._clocks is None:
            self._clocks = {a.host: a.ahead for a in self.agents.values() if a.agent}
        untold = self.probing_agents or self._again or self._early  # links are judged as a whole
        return {
            "joined": self.joined,
            "leads": self.leads,
            "place": self.meeting_place,
            "call": self.rendezvous_call,
            "links": () if untold else self.link_probes.links,
            "usual": None if untold else self.link_probes.usual_link,
            "knocks": tuple(self._knocks.values()),
            "holder": self.port_holder,
            "clocks": self._clocks,
        }

    @property
    def early_open_reason(self) -> str:
        """Why the gate is open although the roll call is not complete; "" where it is not.

        A framework's own client or server means a host without allaboard: it must not be kept waiting.
        """
        if self.plain_client is not None:
            return f"{self.plain_client.peer} runs without allaboard ({self.plain_client.said})"
        call = self.rendezvous_call
        if call is not None and not self.leads and call.answer in (Answer.STORE, Answer.GRPC):
            return (
                ""
                if self.has_stale_store
                else f"the framework's own rendezvous is open at {call.address}"
            )
        return ""

    @property
    def has_stale_store(self) -> bool:
        """Whether the store at the meeting place belongs to a job that is complete without us."""
        call = self.rendezvous_call
        return (
            call is not None
            and call.answer is Answer.STORE
            and 0 < self.declared_world_size <= call.joined
        )

    declared_world_size = 0
    """The world size that our own member declared."""

    def next_probes(self, now: float, roll: RollCall) -> Iterator[ProbeLinks]:
        """Asks for the trials of the links of a complete roll, once; then for those of the second round."""
        if self._again:
            self.probes_asked_at, self.probing_agents = now, set(self._again)
            self.link_probes.request_second_round(self._again)
            self._again = {}
            yield from self.link_probes.commands
        if self._early and not self.probing_agents:
            yield from self._once_up(now, roll)
        if self.probes_asked_at is not None:
            return
        self.probes_asked_at = now
        for agent, wanted in self._asked(roll):
            self.link_probes.request_probes(agent, wanted)
        self.probing_agents = self.link_probes.agents_asked
        yield from self.link_probes.commands

    def are_links_probed(self, now: float) -> bool:
        """Whether all links have been tried, or have had their time."""
        if not self.joined or not self.leads:
            return True
        if self.probes_asked_at is None:
            return False
        if now - self.probes_asked_at >= PATIENCE:
            self.probing_agents.clear()
        return not self.probing_agents and not self._early

    def _once_up(self, now: float, roll: RollCall) -> Iterator[ProbeLinks]:
        """Servers that refused while they came up are tried again when they are."""
        assert self._early is not None and self.probes_asked_at is not None
        refused = {address for many in self._early.values() for _, address in many}
        told = ((m, m.declared) for m in roll.present)
        own = {t.cluster.get(f"{t.job}:{t.index}", ""): m for m, t in told if t is not None}
        up = {a for a in refused if a in own and _listens(own[a], now)}
        if up != refused and now - self.probes_asked_at < PATIENCE:
            return
        wanted, self._early = {a: m for a, m in self._early.items() if a in self.agents}, None
        self._up |= up
        self.probes_asked_at, self.probing_agents = now, set(wanted)
        self.link_probes.request_second_round(wanted)
        yield from self.link_probes.commands

    def _look_back(self) -> None:
        """Once the first round is over, what failed is to be tried the other way round."""
        if self.probes_asked_at is None or self.probing_agents or self._again is not None:
            return
        self._again = {}
        failed = [(k.source, k.target) for k in self.link_probes.links if not k.works]
        tried = {(k.source, k.target) for k in self.link_probes.links} if failed else set()
        for host, others in reverse_probes(failed, tried).items():
            agent, _ = self._reached.get(host, (-1, ""))
            chosen = tuple((o, self._reached[o][1]) for o in others if o in self._reached)
            if agent in self.agents and chosen:
                self._again[agent] = chosen

    def _asked(self, roll: RollCall) -> Iterator[tuple[int, tuple[Target, ...]]]:
        first = roll.present[0].declared
        if first is not None and first.cluster:
            yield from self._by_task(roll, self.probes_asked_at or 0.0)
            return
        hosts: dict[str, AgentConnected] = {}
        for agent in sorted(self.agents.values(), key=lambda a: (a.rank, a.agent)):
            hosts.setdefault(agent.host, agent)
        order = [(a.host, a.data) for a in hosts.values()]
        self._reached = {a.host: (a.agent, a.data) for a in hosts.values()}
        for index, agent in enumerate(hosts.values()):
            chosen = tuple([order[i] for i in probe_targets(index, len(order))])
            if chosen:
                yield agent.agent, chosen

    def _by_task(self, roll: RollCall, now: float) -> Iterator[tuple[int, tuple[Target, ...]]]:
        """TensorFlow: the tasks' own addresses, as this very task was told them. Who is not held serves
        there already, without us."""
        order = sorted(roll.present, key=lambda m: m.who.rank)
        for index, member in enumerate(order):
            told = member.declared
            assert told is not None
            wanted = []
            for i in probe_targets(index, len(order)):
                other = order[i].who
                address = told.cluster.get(f"{other.job}:{other.index}")
                if address is None or other.host == member.who.host or not _meet(told, other.job):
                    continue
                wanted.append((other.host, address))
                self._reached[other.host] = (order[i].key >> 32, address)
                theirs = order[i].declared
                if theirs is not None and not theirs.hold:
                    self._serving.add(address)
                    if _listens(order[i], now):
                        self._up.add(address)
            if wanted:
                yield member.key >> 32, tuple(wanted)


UP = 2.0
"""Seconds after which a server that was made listens, where it is started by itself too."""


def _listens(one: Member, now: float) -> bool:
    return one.alive and one.phase >= Phase.JOINED and now - one.phase_since >= UP


def _meet(one: Declared, other: str) -> bool:
    """Whether the two exchange anything: with parameter servers, workers have nothing to say to each
    other."""
    servers = any(task.startswith("ps:") for task in one.cluster)
    return not servers or {one.job, other} != {"worker"}
