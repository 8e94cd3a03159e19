"""The rounds in which the agents probe the links between their hosts: whom to ask, and when all is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from allaboard.analysis.roll_call.link_probe_schedule import probe_targets, reverse_probes
from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.coordinator.trackers.link_probes import LinkProbes, Target
from allaboard.facts import Answer, Declared, Link, Member, Phase, Usual
from allaboard.protocol.commands import ProbeLinks
from allaboard.protocol.events import AgentConnected, LinksProbed

PROBES_TIMEOUT_S = 9.0
"""Time for the probes of all links: twice four seconds, as a failed probe is repeated once, and one to
spare."""
SERVER_START_S = 2.0
"""Time after which a server that was created listens, even if it has to be started separately."""

TargetsByAgent = dict[int, tuple[Target, ...]]


class LinkProbeRounds:
    """Probes all links of a complete roll call, the failed ones the other way round, and servers that had not
    come up again."""

    def __init__(self, agents: Mapping[int, AgentConnected]) -> None:
        self._agents = agents
        """The agents that are connected; another object keeps them."""
        self._probes = LinkProbes()
        self.probing_agents: set[int] = set()
        """Agents whose probes are waited for."""
        self.asked_at: float | None = None
        """When the probes of the present round were asked for (s); None before the first."""
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

    def forget_agents(self) -> None:
        """Begin anew, as another host leads now."""
        self._probes.clear_results()
        self.probing_agents.clear()
        self._refused_early = {}
        self.asked_at = None

    def forget_agent(self, agent: int) -> None:
        """Wait no longer for an agent that has disconnected."""
        self.probing_agents.discard(agent)
        self._plan_second_round()

    def skip_probes(self) -> None:
        """Probe no links: their ports are the framework's since the roll call."""
        self.asked_at = 0.0
        self._second_round, self._refused_early = {}, None

    def add_answer(self, event: LinksProbed) -> None:
        """Take in what an agent met."""
        self.probing_agents.discard(event.agent)
        agent = self._agents.get(event.agent)
        # An agent may report what it was asked for, and nothing else: nobody may make us judge more.
        host = agent.host if agent is not None else ""
        links = self._probes.accept_links(event.agent, host, event.links)
        failed = [link for link in links if not self._met_own_server(link)]
        early = [link for link in links if self._met_own_server(link)]
        early = [link for link in early if link.answer is Answer.REFUSED]
        if early and self._refused_early is not None:
            self._refused_early[event.agent] = tuple((k.target, k.address) for k in early)
        source = agent.host if agent is not None else None
        self._probes.add_results(event, source, failed)
        self._plan_second_round()

    def note_opened_early(self, roll: RollCall) -> None:
        """Note that these members go on before every link was probed: their ports are the framework's from
        now on."""
        declarations = (m.declared for m in roll.held_members)
        addresses = (d.cluster.get(f"{d.job}:{d.index}") for d in declarations if d is not None)
        self._serving.update(a for a in addresses if a is not None)

    def next_probes(self, now: float, roll: RollCall) -> Iterator[ProbeLinks]:
        """Ask once for the probes of a complete roll call; later for those of the second round."""
        if self._second_round:
            self._request_again(now, self._second_round)
            self._second_round = {}
            yield from self._probes.commands
        if self._refused_early and not self.probing_agents:
            yield from self._probe_late_servers(now, roll)
        if self.asked_at is not None:
            return
        self.asked_at = now
        for agent, targets in self._targets_of_agents(roll):
            self._probes.request_probes(agent, targets)
        self.probing_agents = self._probes.agents_asked
        yield from self._probes.commands

    def are_over(self, now: float) -> bool:
        """Return True if all links have been probed, or have had their time."""
        if self.asked_at is None:
            return False
        if now - self.asked_at >= PROBES_TIMEOUT_S:
            self.probing_agents.clear()
        return not self.probing_agents and not self._refused_early

    @property
    def links(self) -> tuple[Link, ...]:
        """Each link; none before all have been probed: they are judged together."""
        return () if self._is_incomplete else self._probes.links

    @property
    def usual_link(self) -> Usual | None:
        """All links as one, if there are many, all have been probed, and all work well."""
        return None if self._is_incomplete else self._probes.usual_link

    @property
    def _is_incomplete(self) -> bool:
        return bool(self.probing_agents or self._second_round or self._refused_early)

    def _met_own_server(self, link: Link) -> bool:
        """Return True if the probe met a task's own server, which was not held and is up, or comes up now. A
        server that is up refuses nobody: a firewall does."""
        if link.answer is Answer.REFUSED:
            return link.address in self._serving - self._listening
        return link.address in self._serving and link.answer is Answer.GRPC

    def _request_again(self, now: float, targets: TargetsByAgent) -> None:
        self.asked_at, self.probing_agents = now, set(targets)
        self._probes.request_second_round(targets)

    def _probe_late_servers(self, now: float, roll: RollCall) -> Iterator[ProbeLinks]:
        """Probe the servers again that refused while they came up, once all of them are up."""
        assert self._refused_early is not None and self.asked_at is not None
        refused = {address for targets in self._refused_early.values() for _, address in targets}
        servers = {
            m.declared.cluster.get(f"{m.declared.job}:{m.declared.index}", ""): m
            for m in roll.present
            if m.declared is not None
        }
        listening = {a for a in refused if a in servers and _is_listening(servers[a], now)}
        if listening != refused and now - self.asked_at < PROBES_TIMEOUT_S:
            return
        targets = {a: t for a, t in self._refused_early.items() if a in self._agents}
        self._refused_early = None
        self._listening |= listening
        self._request_again(now, targets)
        yield from self._probes.commands

    def _plan_second_round(self) -> None:
        """Once the first round is over, plan to probe the failed links the other way round."""
        if self.asked_at is None or self.probing_agents or self._second_round is not None:
            return
        self._second_round = {}
        failed = [(k.source, k.target) for k in self._probes.links if not k.works]
        probed = {(k.source, k.target) for k in self._probes.links} if failed else set()
        for host, target_hosts in reverse_probes(failed, probed).items():
            agent, _ = self._addresses.get(host, (-1, ""))
            targets = tuple(
                (target, self._addresses[target][1])
                for target in target_hosts
                if target in self._addresses
            )
            if agent in self._agents and targets:
                self._second_round[agent] = targets

    def _targets_of_agents(self, roll: RollCall) -> Iterator[tuple[int, tuple[Target, ...]]]:
        declared = roll.present[0].declared
        if declared is not None and declared.cluster:
            yield from self._targets_of_tasks(roll, self.asked_at or 0.0)
            return
        hosts: dict[str, AgentConnected] = {}
        for agent in sorted(self._agents.values(), key=lambda a: (a.rank, a.agent)):
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
