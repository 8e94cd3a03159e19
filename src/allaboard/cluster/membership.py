"""This host's part in a meeting of several: what happens here is told there, and what is said there, here."""

from __future__ import annotations

from allaboard.cluster.election import Election
from allaboard.cluster.follower import Follower
from allaboard.cluster.leader import Leader
from allaboard.cluster.leader_selection import LeaderSelection
from allaboard.cluster.membership_role import MembershipRole
from allaboard.cluster.rendezvous_ports import RendezvousPorts
from allaboard.cluster.transport.client_handshake import try_links
from allaboard.cluster.transport.etcd import EtcdLeaseStore
from allaboard.cluster.transport.etcd_url import is_etcd_url, parse_etcd_url
from allaboard.facts import Declared, Phase
from allaboard.protocol.commands import Command, EndJob, OpenGate, ProbeLinks, ShowNote
from allaboard.protocol.events import Event, LinksProbed, ProcessSampled, StrangerConnected


class Membership:
    """Chooses the ``role`` when the first member of this host stands at the door of its init.

    ``environment`` is the worker's. Where the address that the user gave for the meeting is etcd, any host
    may lead, from the start on, and the role may change while the roll is called.
    """

    def __init__(self, role: MembershipRole, environment: dict[str, str]) -> None:
        self._role = role
        uses_election = is_etcd_url(role.coordinator)
        self._ports = RendezvousPorts(role.identity, role.add_events, self._release_ports)
        self._selection = LeaderSelection(role, self._ports, environment, uses_election)
        self.arrived_at: float | None = None
        """When the first member of this host came to its init."""
        self._election: Election | None = None
        role.release_ports = self._release_ports
        role.find_leader_address = self._selection.find_leader_address
        if uses_election:
            url = parse_etcd_url(role.coordinator)
            lease_store = EtcdLeaseStore(url, role.launcher_info.job, environment, role.tls)
            self._election = Election(role, lease_store, url.endpoints[0])
            role.find_leader_address = self._election.find_leader_address

    def start(self) -> None:
        """Before any member of this host was seen."""
        self._role.run_beside(self._run())

    def observe_events(self, now: float, events: list[Event]) -> list[Event]:
        """Looks at what happened here; passes it on; returns what happened elsewhere."""
        role = self._role
        for event in events:
            if not isinstance(event, ProcessSampled):
                continue
            role.worker = role.worker or event.pid
            declared = event.box.declared if event.box is not None else None
            if (
                role.declared is None
                and event.box is not None
                and declared is not None
                and declared.world_size > 1
                and Phase.ARRIVED <= event.box.phase < Phase.LEAVING  # not all are held there
            ):
                role.declared = declared
                self.arrived_at = now
                role.run_beside(self._selection.take_role(declared))
        remote_events = role.take_events()
        role.forward_events(
            now, [*events, *(e for e in remote_events if isinstance(e, StrangerConnected))]
        )
        return remote_events + role.take_events()

    @property
    def leader(self) -> Leader | None:
        return self._role.leader

    @property
    def follower(self) -> Follower | None:
        return self._role.follower

    @property
    def declared(self) -> Declared | None:
        """What the first member of this host told its init."""
        return self._role.declared

    @property
    def facts(self) -> dict[str, str]:
        """What is known of this host; nothing before it was looked at."""
        return self._selection.facts

    def facts_for(self, declared: Declared | None) -> dict[str, str]:
        """The same for a member that told its init so."""
        return self._selection.facts_for(declared)

    def has_surveyed(self, place: str) -> bool:
        """Whether what is to be found out of this meeting place has been."""
        return self._selection.is_surveyed or not place.startswith("file://")

    @property
    def is_linked(self) -> bool:
        """Whether another host decides."""
        return self._role.is_linked

    @property
    def expected_agents(self) -> int:
        """How many agents the job has, as the launcher says it; 0 where it does not."""
        return self._role.launcher_info.size

    @property
    def may_meet_others(self) -> bool:
        """Whether another host may yet be met."""
        return bool(self._selection.address) and not self._selection.is_unreachable

    @property
    def leader_place(self) -> str:
        """Who leads, as far as its address tells."""
        if self._election is not None and self._election.state.leader is not None:
            return self._election.state.leader.host
        return self._selection.address

    @property
    def may_be_unheard(self) -> bool:
        """Whether others of the job may not know yet what happened here."""
        declared, launcher_info = self.declared, self._role.launcher_info
        if self.leader is not None:
            size = declared.world_size if declared is not None else launcher_info.size
            return not size or self.leader.met_count + 1 < size
        if self.follower is not None:
            return self.follower.may_be_unheard
        if not self._selection.ready.is_set():
            return True
        return declared is None and launcher_info.rank == 0 and not self._selection.is_unreachable

    def answer_for_ended_worker(self) -> None:
        """The worker ended before it came to its init: where it was to lead, this agent still tells
        those who come to the place."""
        if self._election is not None or self.leader is not None:
            return  # it has a role already
        if self.declared is None and self._role.launcher_info.rank == 0 and self._selection.address:
            self._role.run_beside(self._selection.lead_without_worker())

    def route_commands(self, now: float, commands: list[Command]) -> list[Command]:
        """Sends on what is for others; adds what others sent; returns what is to be done here."""
        local_commands: list[Command] = []
        leader, follower, election = self.leader, self.follower, self._election
        if leader is not None and any(isinstance(c, OpenGate) for c in commands):
            self._release_ports()  # before the first of another host is let through
        if leader is not None:
            commands = commands + leader.check_silences(now)
        for command in commands:
            local_commands += leader.route_command(command) if leader is not None else [command]
        if leader is not None:
            local_commands += leader.send_due(now)
        if follower is not None:
            local_commands += follower.commands
            follower.commands.clear()
        if election is not None:
            local_commands += [ShowNote(text=text) for text in election.notes]
            election.notes.clear()
            if any(isinstance(c, EndJob) for c in local_commands):
                election.state.is_closed = True
        local_commands += [ShowNote(text=text) for text in self._role.troubles]
        self._role.troubles.clear()
        for command in [c for c in local_commands if isinstance(c, ProbeLinks)]:
            local_commands.remove(command)
            self._role.run_beside(self._probe_links(command))
        if any(isinstance(c, OpenGate) for c in local_commands):
            self._release_ports()
        return local_commands

    def close(self) -> None:
        self._role.close()
        self._ports.close()
        if self._election is not None:
            self._election.give_up_lease()

    async def _run(self) -> None:
        await self._selection.prepare_host()
        if self._election is not None:
            await self._election.run_election()

    def _release_ports(self) -> None:
        self._ports.release_ports()
        if self._election is not None:
            self._election.state.is_closed = True
        if self.leader is not None:
            self.leader.listener.close_port()

    async def _probe_links(self, command: ProbeLinks) -> None:
        results = await try_links(self._role.identity(), command.targets)
        self._role.add_events(LinksProbed(agent=0, links=results.links, worked=results.worked))
