"""The role of this host among the agents of the job: leader, follower, or neither yet."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from allaboard.cluster.follower import Follower, StreamEnd
from allaboard.cluster.framework_clients import FrameworkClients
from allaboard.cluster.job_addresses import JobAddresses
from allaboard.cluster.leader import Leader
from allaboard.cluster.link_limits import LinkLimits
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.etcd_url import is_etcd_url
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import AgentContact, LeaderRoster
from allaboard.configuration.launcher_context import LauncherContext
from allaboard.facts import Declared
from allaboard.launch.open_file_limit import raise_limit
from allaboard.protocol.events import (
    AgentConnected,
    AgentInterrupted,
    Event,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    RoleTaken,
)


@dataclass(frozen=True, kw_only=True)
class MeetingSettings:
    """Everything that an agent knows about the job before it looks for the other agents."""

    launcher_info: LauncherContext
    """What the launcher's environment says about this host's place in the job."""
    secret: bytes = b""
    """The job's secret; b"" if there is none."""
    coordinator: str = ""
    """Address that the user gave for the agents to meet; "" for the job's own rendezvous address."""
    tls: TlsFiles | None = None
    """Certificates of this host; None for plain TCP."""
    round: int = 0
    """Round of the job; agents of another round are refused."""
    is_mixed: bool = False
    """Some members run without allaboard, although the job has a secret or TLS."""
    is_patient: bool = True
    """Whether a host may be out of reach for a while once the job trains."""
    may_succeed: bool = True
    """Whether this agent may lead if the leader is lost while the job trains."""


class MembershipRole:
    """Holds the leader or the follower of this host, and switches between them.

    ``find_leader_address`` returns where a host that does not lead is to go; ``release_ports`` is called when
    the framework is about to bind its port.
    """

    def __init__(
        self,
        settings: MeetingSettings,
        wake: Callable[[], None],
        find_leader_address: Callable[[], Awaitable[str]],
        release_ports: Callable[[], None],
    ) -> None:
        self.launcher_info = settings.launcher_info
        self.coordinator = settings.coordinator
        self.host = os.uname().nodename
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.declared: Declared | None = None
        """Arguments that the first member of this host passed to its init; None before that."""
        self.worker = 0
        """Pid of the first member of this host; 0 before it was seen."""
        self.probe_address = ""
        """``host:port`` on which other hosts can test the link to this one; "" before it is open."""
        self.session = secrets.token_hex(8)
        """Tells this agent from every other one when it reconnects."""
        self._find_leader_address = find_leader_address
        self._on_leader_lost: Callable[[StreamEnd], None] = lambda end: None
        self._on_roster: Callable[[LeaderRoster], None] = lambda roster: None
        self._release_ports = release_ports
        self.wake = wake
        self.troubles: list[str] = []
        """Sentences about background tasks that failed, until they are shown."""
        self._events: list[Event] = []
        self._past_events: dict[tuple[type, int], Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._secret = settings.secret
        self._ticket = "" if settings.secret else secrets.token_hex(16)
        self._has_ticket = False
        self.tls = settings.tls
        self._round = settings.round
        self._is_patient = settings.is_patient
        self._is_mixed = settings.is_mixed
        self._job_addresses = JobAddresses(self._job_hosts, self.run_beside)

    def note_worker(self, pid: int) -> None:
        """Remember the first member of this host; later ones change nothing."""
        self.worker = self.worker or pid

    def note_declaration(self, declared: Declared) -> None:
        """Remember what the first member of this host passed to its init."""
        self.declared = declared

    def set_probe_address(self, address: str) -> None:
        """Set the ``host:port`` on which other hosts can test the link to this one."""
        self.probe_address = address

    @property
    def is_linked(self) -> bool:
        """True if another host decides: this one follows it and hears from it."""
        return self.follower is not None and self.follower.is_linked

    def use_own_ticket(self) -> None:
        """Introduce this host, which leads, by the ticket that it gave to the others."""
        self.adopt_ticket(self._ticket)

    def adopt_ticket(self, ticket: str) -> None:
        """Use the ticket of the agents that took part in the roll call, unless the user gave a secret."""
        if not self._secret and ticket:
            self._ticket, self._has_ticket = ticket, True

    @property
    def is_sealed(self) -> bool:
        """True if a secret or certificates prove who leads."""
        return bool(self._secret or self.tls)

    def framework_clients(self) -> FrameworkClients:
        """Return what tells a member without allaboard from any other caller."""
        return FrameworkClients(
            self._is_mixed or not self.is_sealed, self._job_addresses.known_addresses
        )

    def _job_hosts(self) -> set[str]:
        """Return the hosts of the job, where the framework's cluster names all of them; else none."""
        cluster = self.declared.cluster if self.declared is not None else {}
        return {address.rpartition(":")[0] for address in cluster.values()}

    def identity(self) -> Identity:
        """Return the name and credentials with which this host introduces itself to other agents."""
        return Identity(
            self.launcher_info.job_id,
            self._ticket.encode() if self._has_ticket else self._secret,
            self.host,
            self.declared.rank if self.declared is not None else self.launcher_info.rank,
            self.probe_address,
            self.session,
            self.tls,
            self._round,
        )

    def contact(self) -> AgentContact:
        """Return where other agents can reach this one while the job trains."""
        identity = self.identity()
        return AgentContact(
            host=identity.host,
            rank=identity.rank,
            session=identity.session,
            address=identity.probe_address,
        )

    def watch_leader(
        self, on_leader_lost: Callable[[StreamEnd], None], on_roster: Callable[[LeaderRoster], None]
    ) -> None:
        """Have the loss of the leader's connection during the training reported, and who may lead next."""
        self._on_leader_lost, self._on_roster = on_leader_lost, on_roster

    def add_events(self, *events: Event) -> None:
        """Add events that were observed here at the rendezvous."""
        self._events += events
        self.wake()

    def take_events(self) -> list[Event]:
        """Return what happened at the rendezvous since the last call."""
        if self.follower is not None:
            self._events += self.follower.events
            self.follower.events.clear()
        if self.leader is not None:
            self._events += self.leader.events
            self.leader.events.clear()
        events, self._events = self._events, []
        return events

    def forward_events(self, now: float, events: list[Event]) -> None:
        """Send the events of this host to the leader; while none is known, keep the newest ones for it."""
        if self.follower is not None:
            self.follower.send_events(now, events)
            self.follower.check_silence(now)
            return
        for event in events:
            if isinstance(event, ProcessSampled | MemberFactsReported | ProcessExited):
                # Only the newest event of each kind and process: a follower that starts late sends a state,
                # not a history.
                self._past_events[type(event), event.pid] = event
            elif isinstance(event, AgentInterrupted):
                self._past_events[type(event), 0] = event

    def run_beside(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task until `close`."""
        task = asyncio.ensure_future(self._report_failure(coroutine))
        self._tasks.add(task)
        # The set holds the only strong reference to the task.
        task.add_done_callback(self._tasks.discard)

    async def _report_failure(self, work: Coroutine[Any, Any, None]) -> None:
        """Await the coroutine; an error is shown, and the workers of this host go on."""
        try:
            await work
        except Exception as error:
            reason = str(error) or type(error).__name__
            self.troubles.append(
                f"other hosts of the job may be unable to reach this one: {reason}"
            )
            self.wake()

    def become_leader(self, framework: str, rank: int, ports_elsewhere: bool) -> Leader:
        """Make this host the leader; its port is still to be opened.

        ``ports_elsewhere``: other members listen on the framework's ports, too.
        """
        # Of an earlier try: its followers must reconnect to the new one
        if self.leader is not None:
            self.leader.close()
        leader = self._make_leader(framework, ports_elsewhere)
        self._set_leader(leader, rank)
        return leader

    def make_candidate(self) -> Leader:
        """Return a leader that stands for election. Its port is not the framework's, so members hold
        those."""
        return self._make_leader("", ports_elsewhere=True)

    def make_successor(self, term: int) -> Leader:
        """Return a leader for a job whose leader was lost during the training; its port is to be opened."""
        framework = self.declared.framework if self.declared is not None else ""
        return self._make_leader(framework, ports_elsewhere=False, term=term)

    def take_lead(self, leader: Leader, events: list[Event]) -> None:
        """Make an elected leader the leader of the job; ``events`` are about its predecessors."""
        self.stop_following()
        self._set_leader(leader, self.identity().rank)
        self.add_events(*events)

    def step_down(self) -> None:
        """Follow an agent that has taken the lead meanwhile; so do those that follow this one."""
        if self.leader is not None:
            self.leader.step_down()
            self.leader = None
            self._events.append(RoleTaken(leads=False))
        self.follow_new_leader()

    def resign_lead(self) -> None:
        """Give up the lead, if this host has it, and follow the leader."""
        self.stop_leading()
        self.follow_new_leader()

    def stop_leading(self) -> None:
        """Give up the lead, if this host has it."""
        if self.leader is not None:
            self.leader.close()
            self.leader = None
            # Without `wake`: whoever calls this goes on to another role, which wakes the loop.
            self._events.append(RoleTaken(leads=False))

    def stop_following(self) -> None:
        """Disconnect from the leader, if this host follows one."""
        if self.follower is not None:
            self.follower.close()
            self.follower = None

    def start_following(self) -> None:
        """Connect to the leader, wherever that is, and send what happened here before."""
        self.follower = Follower(
            self._find_leader_address,
            self.identity,
            self._release_ports,
            self.wake,
            is_patient=self._is_patient,
            # In etcd the user named the place where the address is published, not the address.
            is_user_given=bool(self.coordinator) and not is_etcd_url(self.coordinator),
            on_leader_lost=self._on_leader_lost,
            on_roster=self._on_roster,
            link_limits=None if self.is_sealed else LinkLimits(self._job_hosts),
        )
        self.follower.send_events(time.monotonic(), list(self._past_events.values()))
        self.run_beside(self.follower.run_calls())

    def follow_new_leader(self) -> None:
        """Connect to another leader than before, or look for one."""
        if self.follower is None:
            self.start_following()
        else:
            self.follower.hang_up()
        self.wake()

    def close(self) -> None:
        for part in (self.leader, self.follower):
            if part is not None:
                part.close()
        for task in self._tasks:
            task.cancel()

    def _set_leader(self, leader: Leader, rank: int) -> None:
        self.leader = leader
        connected = AgentConnected(
            agent=0, host=self.host, probe_address=self.probe_address, rank=rank
        )
        role = RoleTaken(
            leads=True, meeting_place=self.coordinator, is_roll_call_over=leader.is_gate_open
        )
        self.add_events(role, connected)

    def _make_leader(self, framework: str, ports_elsewhere: bool, term: int = 1) -> Leader:
        raise_limit()  # a leader of thousands of hosts needs as many open files
        job = self.launcher_info.job_id
        return Leader(
            job,
            self.identity().secret,
            framework,
            self.wake,
            self.tls,
            self._round,
            is_patient=self._is_patient,
            ports_elsewhere=ports_elsewhere,
            contact=self.contact,
            term=term,
            ticket=self._ticket,
            is_mixed=self._is_mixed,
            job_addresses=self._job_addresses.known_addresses,
        )
