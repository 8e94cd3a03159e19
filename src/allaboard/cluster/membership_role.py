"""Which part this host has in the meeting: it leads, or goes to who does, or neither yet."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from allaboard.cluster.follower import Follower
from allaboard.cluster.leader import Leader
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.configuration.launcher_context import Described
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


class MembershipRole:
    """``told`` is what the launcher says of this host, ``coordinator`` an address that the user gave for the
    meeting. All are in the ``round_`` of the job that begins with this meeting. ``patient``: once it trains a
    host may be out of reach for a while."""

    def __init__(
        self,
        launcher_info: Described,
        secret: bytes,
        coordinator: str,
        wake: Callable[[], None],
        tls: TlsFiles | None = None,
        round_: int = 0,
        is_patient: bool = True,
    ) -> None:
        self.launcher_info = launcher_info
        self.coordinator = coordinator
        self.host = os.uname().nodename
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.declared: Declared | None = None
        """What the first member of this host told its init."""
        self.worker = 0
        """The pid of the first member of this host; 0 where none was seen."""
        self.probe_address = ""
        """``address:port`` by which other hosts can try this one."""
        self.session = secrets.token_hex(8)
        self.find_leader_address: Callable[[], Awaitable[str]]
        """Where a host that does not lead is to go; set before it may have to."""
        self.release_ports: Callable[[], None]
        """Called where the framework's port is to be closed; set likewise."""
        self.wake = wake
        self.troubles: list[str] = []
        """Why a part of this host's own did not work."""
        self._events: list[Event] = []
        self._past_events: dict[tuple[type, int], Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._secret = secret
        self.tls = tls
        self._round = round_
        self._is_patient = is_patient

    @property
    def is_linked(self) -> bool:
        """Whether another host decides."""
        return self.follower is not None and self.follower.is_linked

    def identity(self) -> Identity:
        """As whom this host speaks."""
        return Identity(
            self.launcher_info.job,
            self._secret,
            self.host,
            self.declared.rank if self.declared is not None else self.launcher_info.rank,
            self.probe_address,
            self.session,
            self.tls,
            self._round,
        )

    def add_events(self, *events: Event) -> None:
        """This happened at the meeting, as seen from here."""
        self._events += events
        self.wake()

    def take_events(self) -> list[Event]:
        """What happened there since this was asked last."""
        if self.follower is not None:
            self._events += self.follower.events
            self.follower.events.clear()
        if self.leader is not None:
            self._events += self.leader.events
            self.leader.events.clear()
        events, self._events = self._events, []
        return events

    def forward_events(self, now: float, events: list[Event]) -> None:
        """What happened on this host, for who leads; kept for it while none is known."""
        if self.follower is not None:
            self.follower.send_events(now, events)
            self.follower.check_silence(now)
            return
        for event in events:
            if isinstance(event, ProcessSampled | MemberFactsReported | ProcessExited):
                self._past_events[type(event), event.pid] = event
            elif isinstance(event, AgentInterrupted):
                self._past_events[type(event), 0] = event

    def run_beside(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Beside everything else, until `close`."""
        task = asyncio.ensure_future(self._report_failure(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_failure(self, work: Coroutine[Any, Any, None]) -> None:
        """What goes wrong there is said; the workers of this host go on."""
        try:
            await work
        except Exception as error:
            reason = str(error) or type(error).__name__
            self.troubles.append(f"this host may not be met by the others of the job: {reason}")
            self.wake()

    def become_leader(self, framework: str, rank: int) -> Leader:
        """This host leads; where the others come is still to be opened."""
        if self.leader is not None:  # of an attempt before: who came there must come here
            self.leader.close()
        leader = self._make_leader(framework)
        self._set_leader(leader, rank)
        return leader

    def make_candidate(self) -> Leader:
        """Of an election, not elected yet. Its port is no framework's."""
        leader = self._make_leader("")
        leader.ports_elsewhere = True
        return leader

    def take_lead(self, leader: Leader, events: list[Event]) -> None:
        """This host leads; ``events`` are about who did before."""
        self.stop_following()
        self._set_leader(leader, self.identity().rank)
        self.add_events(*events)

    def resign_lead(self) -> None:
        """Another host leads."""
        self.stop_leading()
        self.follow_new_leader()

    def stop_leading(self) -> None:
        """This host does not lead any more, if it did."""
        if self.leader is not None:
            self.leader.close()
            self.leader = None
            self._events.append(RoleTaken(leads=False))

    def stop_following(self) -> None:
        """This host goes to no other any more, if it did."""
        if self.follower is not None:
            self.follower.close()
            self.follower = None

    def start_following(self) -> None:
        """Goes to who leads, wherever `find` says that this is."""
        self.follower = Follower(
            self.find_leader_address, self.identity, self.release_ports, self.wake
        )
        self.follower.is_patient = self._is_patient
        self.follower.is_user_given = bool(self.coordinator)
        self.follower.send_events(time.monotonic(), list(self._past_events.values()))
        self.run_beside(self.follower.run_calls())

    def follow_new_leader(self) -> None:
        """Another host leads than before, or it is not known which."""
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
        connected = AgentConnected(agent=0, host=self.host, data=self.probe_address, rank=rank)
        self.add_events(RoleTaken(leads=True, place=self.coordinator), connected)

    def _make_leader(self, framework: str) -> Leader:
        raise_limit()
        job = self.launcher_info.job
        leader = Leader(job, self._secret, framework, self.wake, self.tls, self._round)
        leader.is_patient = self._is_patient
        return leader
