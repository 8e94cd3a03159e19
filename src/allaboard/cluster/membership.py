"""Connects this host to the other hosts of the job: sends them its events, and receives events and
commands."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from allaboard.cluster.election import Election
from allaboard.cluster.follower import Follower, StreamEnd
from allaboard.cluster.leader import Leader
from allaboard.cluster.leader_selection import LeaderSelection
from allaboard.cluster.membership_role import MeetingSettings, MembershipRole
from allaboard.cluster.rendezvous_ports import RendezvousPorts
from allaboard.cluster.succession import Succession
from allaboard.cluster.transport.etcd import EtcdLeaseStore
from allaboard.cluster.transport.etcd_url import is_etcd_url, parse_etcd_url
from allaboard.cluster.transport.link_trial import try_links
from allaboard.cluster.transport.wire import LeaderRoster
from allaboard.cluster.unproved_advice import mark_unproved
from allaboard.facts import Declared, Phase
from allaboard.protocol.commands import Command, EndJob, OpenGate, ProbeLinks, ShowNote
from allaboard.protocol.events import Event, LinksProbed, ProcessSampled, StrangerConnected


class Membership:
    """Chooses the role of this host when its first member reaches its init.

    ``environment`` is the worker's; ``wake`` is called when there is news. If the user named etcd as the
    meeting place, any host may lead from the start, and the role may change while the roll is called.
    """

    def __init__(
        self, settings: MeetingSettings, environment: dict[str, str], wake: Callable[[], None]
    ) -> None:
        role = MembershipRole(settings, wake, self._find_leader_address, self._release_ports)
        self._role = role
        uses_election = is_etcd_url(role.coordinator)
        self._ports = RendezvousPorts(
            role.identity, role.add_events, self._release_ports, role.framework_clients()
        )
        self._succession = Succession(role, self._ports, settings.may_succeed)
        role.watch_leader(self._on_leader_lost, self._on_roster)
        self._late_leader: Leader | None = None
        """The leader of this host that admits agents at a port of our own; None while there is none."""
        self._selection = LeaderSelection(role, self._ports, environment, uses_election)
        self.arrived_at: float | None = None
        """When the first member of this host reached its init (s, CLOCK_MONOTONIC); None before."""
        self._election: Election | None = None
        if uses_election:
            url = parse_etcd_url(role.coordinator)
            lease_store = EtcdLeaseStore(url, role.launcher_info.job_id, environment, role.tls)
            self._election = Election(role, lease_store, url.endpoints[0])

    def start(self) -> None:
        """Begin to look for the other hosts, before any member of this host was seen."""
        self._role.run_beside(self._run())

    def observe_events(self, now: float, events: list[Event]) -> list[Event]:
        """Take note of the events of this host and send them on; return the events of other hosts."""
        role = self._role
        for event in events:
            if not isinstance(event, ProcessSampled):
                continue
            role.note_worker(event.pid)
            declared = event.box.declared if event.box is not None else None
            if (
                (role.declared is None or self._is_late_first_rank(declared))
                and event.box is not None
                and declared is not None
                and declared.world_size > 1
                and Phase.ARRIVED <= event.box.phase < Phase.LEAVING  # not all are held there
            ):
                role.note_declaration(declared)
                self.arrived_at = now
                is_held = not declared.hold or event.box.phase == Phase.ARRIVED
                role.run_beside(self._selection.take_role(declared, is_held))
        # Strangers that were seen at this host's ports are sent to the leader, too: it judges for all hosts.
        remote_events = role.take_events()
        role.forward_events(
            now, [*events, *(e for e in remote_events if isinstance(e, StrangerConnected))]
        )
        # Sending may have produced events of its own, such as a broken stream.
        return remote_events + role.take_events()

    def _is_late_first_rank(self, declared: Declared | None) -> bool:
        """Return True if this is rank 0, and another rank of this host has reached its init before it.

        This host then leads after all: the first one has only said that it is not rank 0.
        """
        previous = self._role.declared
        return (
            declared is not None
            and previous is not None
            and declared.rank == 0 < previous.rank
            and (declared.place, declared.world_size) == (previous.place, previous.world_size)
            and self._role.leader is None
        )

    @property
    def leader(self) -> Leader | None:
        return self._role.leader

    @property
    def follower(self) -> Follower | None:
        return self._role.follower

    @property
    def declared(self) -> Declared | None:
        """Arguments that the first member of this host passed to its init; None before that."""
        return self._role.declared

    @property
    def facts(self) -> dict[str, str]:
        """Facts about this host; empty before they are measured."""
        return self._selection.facts

    def facts_for(self, declared: Declared | None) -> dict[str, str]:
        """Return the facts about this host for a member that passed these arguments to its init."""
        return self._selection.facts_for(declared)

    def has_surveyed(self, place: str) -> bool:
        """Return True unless this rendezvous is a file that still has to be examined."""
        return self._selection.is_surveyed or not place.startswith("file://")

    @property
    def is_linked(self) -> bool:
        """True if another host decides."""
        return self._role.is_linked

    @property
    def expected_agents(self) -> int:
        """Number of agents of the job according to the launcher; 0 if it does not say."""
        return self._role.launcher_info.world_size

    @property
    def may_meet_others(self) -> bool:
        """True if another host may still connect or be reached."""
        return bool(self._selection.address) and not self._selection.is_unreachable

    @property
    def leader_place(self) -> str:
        """Host name of the leader, or its address if no name is known."""
        if self._election is not None and self._election.state.leader is not None:
            return self._election.state.leader.host
        return self._selection.address

    @property
    def is_loss_open(self) -> bool:
        """True while it is being found out whether a leader whose connection ended is gone."""
        return self._succession.is_open

    @property
    def may_be_unheard(self) -> bool:
        """True if other hosts of the job may not know yet what happened here."""
        declared, launcher_info = self.declared, self._role.launcher_info
        if self.leader is not None:
            size = declared.world_size if declared is not None else launcher_info.world_size
            return not size or self.leader.met_count + 1 < size
        if self.follower is not None:
            return self.follower.may_be_unheard
        if not self._selection.ready.is_set():
            return True
        return declared is None and launcher_info.rank == 0 and not self._selection.is_unreachable

    def answer_for_ended_worker(self) -> None:
        """Lead in place of a worker that ended before it reached its init.

        Otherwise the hosts that connect later would be refused, and could not learn why.
        """
        if self._election is not None or self.leader is not None:
            return  # this host has a role already
        if self.declared is None and self._role.launcher_info.rank == 0 and self._selection.address:
            self._role.run_beside(self._selection.lead_without_worker())

    def route_commands(self, now: float, commands: list[Command]) -> list[Command]:
        """Send the commands for other hosts; return those for this host, with those that other hosts sent."""
        local_commands: list[Command] = []
        leader, follower, election = self.leader, self.follower, self._election
        if leader is not None and any(isinstance(c, OpenGate) for c in commands):
            # Before the first gate on another host opens, since its framework connects at once.
            self._release_ports()
        if leader is not None:
            commands = commands + leader.check_silences(now) + leader.take_notes()
        for command in commands:
            local_commands += leader.route_command(command) if leader is not None else [command]
        if leader is not None:
            local_commands += leader.send_due(now) + leader.take_notes()
            self._admit_late_agents(leader)
            self._succession.watch_quorum(leader)
        if follower is not None:
            local_commands += self._take_orders(follower)
        local_commands += [ShowNote(text=text) for text in self._succession.notes]
        self._succession.notes.clear()
        if election is not None:
            local_commands += [ShowNote(text=text) for text in election.notes]
            election.notes.clear()
            if any(isinstance(c, EndJob) for c in local_commands):
                election.close_candidacy()
        local_commands += [ShowNote(text=text) for text in self._role.troubles]
        self._role.troubles.clear()
        for command in [c for c in local_commands if isinstance(c, ProbeLinks)]:
            # Links are tested in a task: it takes seconds, and the tick must not wait.
            local_commands.remove(command)
            self._role.run_beside(self._probe_links(command))
        if any(isinstance(c, OpenGate) for c in local_commands):
            self._release_ports()
        return local_commands

    def _take_orders(self, follower: Follower) -> list[Command]:
        """Return what the leader has ordered, marked as its word."""
        orders = [
            replace(c, is_from_leader=True) if isinstance(c, EndJob) else c
            for c in follower.commands
        ]
        follower.commands.clear()
        if self._role.is_sealed:
            return orders
        return [mark_unproved(c, follower.leader_address) for c in orders]

    def open_all_gates(self, reason: str) -> None:
        """Let the members of all hosts that this one leads go on, and free the framework's ports."""
        self._release_ports()
        if self.leader is not None:
            self.leader.open_all_gates(reason)

    def close(self) -> None:
        self._role.close()
        self._ports.close()
        if self._election is not None:
            self._election.give_up_lease()

    def _on_leader_lost(self, end: StreamEnd) -> None:
        if self._election is not None:
            self._election.give_up_lease()  # it elects the leader of a roll call, which is over
        self._succession.begin(end)

    def _on_roster(self, roster: LeaderRoster) -> None:
        self._role.adopt_ticket(roster.ticket)
        self._ports.seal_probe_port(self._role.identity().secret)

    def _admit_late_agents(self, leader: Leader) -> None:
        """Once the roll call is over, admit agents whose connection broke at a port of our own."""
        if leader.is_gate_open and self._late_leader is not leader:
            self._late_leader = leader
            self._role.use_own_ticket()
            self._ports.hand_over_probe_port(leader.listener)

    async def _find_leader_address(self) -> str:
        if self._succession.address:
            return self._succession.address
        if self._election is not None:
            return await self._election.find_leader_address()
        return await self._selection.find_leader_address()

    async def _run(self) -> None:
        # First the facts about this host and its probe port, since the election publishes the address.
        await self._selection.prepare_host()
        if self._election is not None:
            await self._election.run_election()

    def _release_ports(self) -> None:
        self._ports.release_ports()
        if self._election is not None:
            self._election.close_candidacy()
        # After the roll call the leader listens at a port of its own only.
        if self.leader is not None and not self.leader.is_gate_open:
            self.leader.listener.close_port()

    async def _probe_links(self, command: ProbeLinks) -> None:
        results = await try_links(self._role.identity(), command.targets)
        self._role.add_events(LinksProbed(agent=0, links=results.links, worked=results.worked))
