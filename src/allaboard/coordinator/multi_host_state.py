"""What is known of other hosts: which agents are connected, which links were probed, which strangers called.
Pure but for its memory."""

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

PROBES_TIMEOUT_S = 9.0
"""Time for the probes of all links: twice four seconds, as a failed probe is repeated once, and one to
spare."""
MAX_STRANGERS = 64
"""Different strangers that are remembered."""
SERVER_START_S = 2.0
"""Time after which a server that was created listens, even if it has to be started separately."""

TargetsByAgent = dict[int, tuple[Target, ...]]


class MultiHostState:
    """The state of the meeting of several hosts."""

    declared_world_size = 0
    """The world size that our own member declared; 0 if it has not."""

    def __init__(self, host: str, joined: bool) -> None:
        self.host = host
        self.joined = joined
        self.leads = False
        """True if the agents meet here."""
        self.meeting_place = ""
        self.rendezvous_call: Call | None = None
        self.port_holder: Holder | None = None
        self.agents: dict[int, AgentConnected] = {}
        self.link_probes = LinkProbes()
        self.probing_agents: set[int] = set()
        """Agents whose probes are waited for."""
        self.probes_asked_at: float | None = None
        self.plain_client: Knock | None = None
        """A client of the framework that came from a host without allaboard."""
        self._addresses: dict[str, tuple[int, str]] = {}
        """Host to its agent, and the address where others probe it."""
        self._second_round: TargetsByAgent | None = None
        """What is to be probed the other way round; None until the first round is over."""
        self._serving: set[str] = set()
        """Addresses of servers that were not held at the gate."""
        self._listening: set[str] = set()
        """Those of them that had been up for a while when they were to be probed."""
        self._refused_early: TargetsByAgent | None = {}
        """Agent to the servers that refused it while they came up; None once these were probed again."""
        self._strangers: dict[tuple[str, str], Knock] = {}
        self._clocks: dict[str, float] | None = None
        """Host to how far its clock is ahead of ours (s); None until it is asked for again."""

    def apply_event(self, event: Event) -> None:
        """Take in an event that is about other hosts; others are ignored."""
        match event:
            case RoleTaken():
                self.leads, self.meeting_place = event.leads, event.meeting_place
                if not event.leads:
                    self._forget_agents()
            case AgentConnected():
                self.agents[event.agent] = event
                self._clocks = None
            case AgentDisconnected():
                self._clocks = None
                self.probing_agents.discard(event.agent)
                self.agents.pop(event.agent, None)
                self._plan_second_round()
            case RendezvousProbed():
                self.rendezvous_call = event.call
            case LinksProbed():
                self._links_probed(event)
            case PortChecked():
                self.port_holder = event.holder
            case StrangerConnected():
                self._stranger_connected(event)

    def _forget_agents(self) -> None:
        self._clocks = None
        self.agents.clear()
        self.link_probes.clear_results()
        self.probing_agents.clear()
        self._refused_early = {}
        self.probes_asked_at = None

    def _links_probed(self, event: LinksProbed) -> None:
        self.probing_agents.discard(event.agent)
        agent = self.agents.get(event.agent)
        failed = [link for link in event.links if not self._met_own_server(link)]
        early = [
            link for link in event.links if link.answer is Answer.REFUSED and link not in failed
        ]
        if early and self._refused_early is not None:
            self._refused_early[event.agent] = tuple((k.target, k.address) for k in early)
        source = agent.host if agent is not None else None
        self.link_probes.add_results(event, source, failed)
        self._plan_second_round()

    def _stranger_connected(self, event: StrangerConnected) -> None:
        knock = event.knock
        if event.is_plain_client:
            self.plain_client = self.plain_client or knock
            return
        key = knock.peer, knock.kind
        earlier = self._strangers.get(key)
        if earlier is not None:
            # A caller that hangs up where TLS begins may say over another stream who it is.
            best = (
                knock
                if knock.is_unequipped_worker and not earlier.is_unequipped_worker
                else earlier
            )
            knock = msgspec.structs.replace(
                best, times=earlier.times + 1, knocked_at=earlier.knocked_at
            )
        if earlier is not None or len(self._strangers) < MAX_STRANGERS:
            self._strangers[key] = knock

    def note_opened_early(self, roll: RollCall) -> None:
        """Note that these members go on before every link was probed: their ports are the framework's from
        now on."""
        declarations = (m.declared for m in roll.held_members)
        addresses = (d.cluster.get(f"{d.job}:{d.index}") for d in declarations if d is not None)
        self._serving.update(a for a in addresses if a is not None)

    def _met_own_server(self, link: Link) -> bool:
        """Return True if the probe met a task's own server, which was not held and is up, or comes up now. A
        server that is up refuses nobody: a firewall does."""
        if link.answer is Answer.REFUSED:
            return link.address in self._serving - self._listening
        return link.address in self._serving and link.answer is Answer.GRPC

    def view_fields(self) -> dict[str, Any]:
        """Return the fields of a JobView that are about other hosts."""
        if self._clocks is None:
            self._clocks = {a.host: a.clock_ahead_s for a in self.agents.values() if a.agent}
        # Links are judged together, once all have been probed.
        is_incomplete = self.probing_agents or self._second_round or self._refused_early
        return {
            "joined": self.joined,
            "leads": self.leads,
            "place": self.meeting_place,
            "call": self.rendezvous_call,
            "links": () if is_incomplete else self.link_probes.links,
            "usual": None if is_incomplete else self.link_probes.usual_link,
            "knocks": tuple(self._strangers.values()),
            "holder": self.port_holder,
            "clocks": self._clocks,
        }

    @property
    def early_open_reason(self) -> str:
        """Why the gate opens although the roll call is not complete; "" if it does not.

        A framework's own client or server means a host without allaboard: it must not be kept waiting.
        """
        if self.plain_client is not None:
            return f"{self.plain_client.peer} runs without allaboard ({self.plain_client.said})"
        call = self.rendezvous_call
        if call is None or self.leads or call.answer not in (Answer.STORE, Answer.GRPC):
            return ""
        if self.has_stale_store:
            return ""
        return f"the framework's own rendezvous is open at {call.address}"

    @property
    def has_stale_store(self) -> bool:
        """True if the store at the rendezvous address belongs to a job that is complete without us."""
        call = self.rendezvous_call
        return (
            call is not None
            and call.answer is Answer.STORE
            and 0 < self.declared_world_size <= call.joined
        )

    def next_probes(self, now: float, roll: RollCall) -> Iterator[ProbeLinks]:
        """Ask once for the probes of a complete roll call; later for those of the second round."""
        if self._second_round:
            self._request_again(now, self._second_round)
            self._second_round = {}
            yield from self.link_probes.commands
        if self._refused_early and not self.probing_agents:
            yield from self._probe_late_servers(now, roll)
        if self.probes_asked_at is not None:
            return
        self.probes_asked_at = now
        for agent, targets in self._targets_of_agents(roll):
            self.link_probes.request_probes(agent, targets)
        self.probing_agents = self.link_probes.agents_asked
        yield from self.link_probes.commands

    def _request_again(self, now: float, targets: TargetsByAgent) -> None:
        self.probes_asked_at, self.probing_agents = now, set(targets)
        self.link_probes.request_second_round(targets)

    def are_links_probed(self, now: float) -> bool:
        """Return True if all links have been probed, or have had their time."""
        if not self.joined or not self.leads:
            return True
        if self.probes_asked_at is None:
            return False
        if now - self.probes_asked_at >= PROBES_TIMEOUT_S:
            self.probing_agents.clear()
        return not self.probing_agents and not self._refused_early

    def _probe_late_servers(self, now: float, roll: RollCall) -> Iterator[ProbeLinks]:
        """Probe the servers again that refused while they came up, once all of them are up."""
        assert self._refused_early is not None and self.probes_asked_at is not None
        refused = {address for targets in self._refused_early.values() for _, address in targets}
        servers = {
            m.declared.cluster.get(f"{m.declared.job}:{m.declared.index}", ""): m
            for m in roll.present
            if m.declared is not None
        }
        listening = {a for a in refused if a in servers and _is_listening(servers[a], now)}
        if listening != refused and now - self.probes_asked_at < PROBES_TIMEOUT_S:
            return
        targets = {a: t for a, t in self._refused_early.items() if a in self.agents}
        self._refused_early = None
        self._listening |= listening
        self._request_again(now, targets)
        yield from self.link_probes.commands

    def _plan_second_round(self) -> None:
        """Once the first round is over, plan to probe the failed links the other way round."""
        if self.probes_asked_at is None or self.probing_agents or self._second_round is not None:
            return
        self._second_round = {}
        failed = [(k.source, k.target) for k in self.link_probes.links if not k.works]
        probed = {(k.source, k.target) for k in self.link_probes.links} if failed else set()
        for host, target_hosts in reverse_probes(failed, probed).items():
            agent, _ = self._addresses.get(host, (-1, ""))
            targets = tuple(
                (target, self._addresses[target][1])
                for target in target_hosts
                if target in self._addresses
            )
            if agent in self.agents and targets:
                self._second_round[agent] = targets

    def _targets_of_agents(self, roll: RollCall) -> Iterator[tuple[int, tuple[Target, ...]]]:
        declared = roll.present[0].declared
        if declared is not None and declared.cluster:
            yield from self._targets_of_tasks(roll, self.probes_asked_at or 0.0)
            return
        hosts: dict[str, AgentConnected] = {}
        for agent in sorted(self.agents.values(), key=lambda a: (a.rank, a.agent)):
            # One agent for each host: the links of the others on it are the same.
            hosts.setdefault(agent.host, agent)
        order = [(a.host, a.probe_address) for a in hosts.values()]
        self._addresses = {a.host: (a.agent, a.probe_address) for a in hosts.values()}
        for index, agent in enumerate(hosts.values()):
            targets = tuple([order[i] for i in probe_targets(index, len(order))])
            if targets:
                yield agent.agent, targets

    def _targets_of_tasks(
        self, roll: RollCall, now: float
    ) -> Iterator[tuple[int, tuple[Target, ...]]]:
        """Yield the targets of a TensorFlow cluster: the tasks' own addresses, as this very task has them. A
        task that is not held serves there already, without us."""
        order = sorted(roll.present, key=lambda m: m.who.rank)
        for index, member in enumerate(order):
            declared = member.declared
            assert declared is not None
            targets = []
            for i in probe_targets(index, len(order)):
                peer = order[i]
                who = peer.who
                address = declared.cluster.get(f"{who.job}:{who.index}")
                if address is None or who.host == member.who.host:
                    continue
                if not _exchange_data(declared, who.job):
                    continue
                targets.append((who.host, address))
                # The upper half of the key is the agent's number: see `process_keys`.
                self._addresses[who.host] = (peer.key >> 32, address)
                if peer.declared is not None and not peer.declared.hold:
                    self._serving.add(address)
                    if _is_listening(peer, now):
                        self._listening.add(address)
            if targets:
                yield member.key >> 32, tuple(targets)


def _is_listening(member: Member, now: float) -> bool:
    is_up = member.alive and member.phase >= Phase.JOINED
    return is_up and now - member.phase_since >= SERVER_START_S


def _exchange_data(declared: Declared, peer_job: str) -> bool:
    """Return True if two tasks exchange anything: with parameter servers, workers do not with each other."""
    has_servers = any(task.startswith("ps:") for task in declared.cluster)
    return not has_servers or {declared.job, peer_job} != {"worker"}
