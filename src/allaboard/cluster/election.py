"""Elects the leader of the job: during the roll call it may be lost, and another host takes over.

The lease is kept in a store that outlives hosts (`transport.leader_lease`). Its holder renews it; a host that
finds it free opens a port and tries to acquire it; all others connect to the address in it. A former leader
that was lost is reported like any other host whose agent was lost.
"""

from __future__ import annotations

import asyncio
import socket
import time

from allaboard.cluster.election_state import ElectionState, ElectionStep
from allaboard.cluster.leader import Leader
from allaboard.cluster.membership_role import MembershipRole
from allaboard.cluster.transport.client_handshake import Identity
from allaboard.cluster.transport.leader_lease import LeaderRecord, LeaseStore, LeaseStoreError
from allaboard.facts import Address
from allaboard.protocol.events import AgentConnected, AgentDisconnected, Event, ProcessSampled
from allaboard.protocol.process_keys import process_key

LED_POLL_S, LEADERLESS_POLL_S = 1.0, 0.3
"""Seconds between two reads of the lease: while there is a leader, and while there is none."""
FIRST_FORMER_LEADER_NUMBER = 1 << 20
"""First number for agents that led before; other agents count from 1, so the numbers never meet."""


class Election:
    """Runs the election on this host.

    ``store_address`` is where the lease is kept (host, port): the address by which this host reaches it is
    assumed to be the one by which other hosts reach this one.
    """

    def __init__(
        self, role: MembershipRole, lease_store: LeaseStore, store_address: tuple[str, int]
    ) -> None:
        self._role = role
        self._lease_store = lease_store
        self._store_address = store_address
        self._is_closed = False
        self.state = ElectionState(role.session, role.launcher_info.rank)
        self.store_error: LeaseStoreError | None = None
        """The newest error of the lease store; None if it answered last time."""
        self.notes: list[str] = []
        """Sentences about changes of the leader, until they are shown."""

    async def find_leader_address(self) -> str:
        """Return the leader's address, "" if there is no leader. Raises LeaseStoreError if that cannot be
        known."""
        if self.state.leader is None and self.store_error is not None:
            raise self.store_error
        return self.state.leader.address if self.state.leader is not None else ""

    async def run_election(self) -> None:
        """Take part in the election until `give_up_lease`. Starts once the worker was seen: the lease names
        its pid."""
        # A host without a worker must not lead: if its worker never starts, the others would wait for it.
        while not self._role.worker and not self._is_closed:
            await asyncio.sleep(LEADERLESS_POLL_S)
        while not self._is_closed:
            try:
                await self._run_turn()
                self.store_error = None
            except LeaseStoreError as error:
                self.store_error = error
                self._on_store_error()
            calm = self._role.is_linked or self._role.leader is not None
            await asyncio.sleep(LED_POLL_S if calm else LEADERLESS_POLL_S)

    def close_candidacy(self) -> None:
        """Take over from nobody any more: training has begun, or the verdict is known."""
        self.state.is_closed = True

    def give_up_lease(self) -> None:
        """Stop, and give up the lease, so that the next leader need not wait for its end."""
        self._is_closed = True
        self._lease_store.release_lease()

    async def _run_turn(self) -> None:
        role, state = self._role, self.state
        leader = role.leader
        if leader is not None:
            # A lost lease may only have expired because we were slow, so first try to acquire it again; if
            # another host has it, two leaders must not go on side by side.
            is_lost = (
                state.record_renewal(await self._lease_store.renew_lease()) is ElectionStep.STAND
            )
            if is_lost and not await self._lease_store.acquire_lease(
                await self._make_record(leader)
            ):
                self._resign_lead(await self._lease_store.read_leader())
            return
        holder = await self._lease_store.read_leader()
        match state.observe_lease(time.monotonic(), holder, role.is_linked):
            case ElectionStep.STAND:
                await self._stand_for_leader()
            case ElectionStep.FOLLOW:
                self._follow_leader()

    def _on_store_error(self) -> None:
        leader = self._role.leader
        if leader is None:
            if self._role.follower is None:
                self._role.follow_new_leader()  # a follower reports how its attempts fail
        else:
            step = self.state.record_store_error(
                time.monotonic(), leader.met_count, leader.connected_count
            )
            if step is ElectionStep.RESIGN:
                self._resign_lead(None)

    async def _stand_for_leader(self) -> None:
        role = self._role
        leader = role.make_candidate()
        has_won = False
        try:
            # Open before the lease is acquired: the address in the record must answer from its first moment
            # on.
            await leader.listener.open_port(0)
            record = await self._make_record(leader)
            has_won = await self._lease_store.acquire_lease(record)
        finally:
            if not has_won:
                leader.close()
        if not has_won:
            return
        self.state.record_win(record)
        events: list[Event] = []
        for number, former in enumerate(self.state.former_leaders, FIRST_FORMER_LEADER_NUMBER):
            self.notes.append(f"the leader {former.host} was lost; {role.host} takes over")
            # Should that agent connect again, it gets the number under which it is reported as lost.
            leader.listener.reserve_number(former.session, number)
            events += _lost_leader_events(number, former, time.monotonic())
        role.take_lead(leader, events)

    def _follow_leader(self) -> None:
        leader, former_leaders = self.state.leader, self.state.former_leaders
        assert leader is not None
        if former_leaders:
            self.notes.append(
                f"the leader {former_leaders[-1].host} was lost; {leader.host} takes over"
            )
        self._role.follow_new_leader()

    def _resign_lead(self, successor: LeaderRecord | None) -> None:
        self.state.record_resignation(successor)
        self._role.resign_lead()

    async def _make_record(self, leader: Leader) -> LeaderRecord:
        identity = self._role.identity()
        loop = asyncio.get_running_loop()
        own_address = await loop.run_in_executor(None, _own_address, self._store_address, identity)
        return LeaderRecord(
            address=f"{own_address}:{leader.listener.port}",
            session=self._role.session,
            host=identity.host,
            job=identity.job,
            rank=identity.rank,
            pid=self._role.worker,
        )


def _own_address(store_address: tuple[str, int], identity: Identity) -> str:
    """Return the address by which others reach this host; its name if only loopback addresses are known."""
    addresses = [_source_address(store_address), Address.from_endpoint(identity.probe_address).host]
    routable = [a for a in addresses if a and not a.startswith(("127.", "0.", "::1"))]
    return next((f"[{a}]" if ":" in a else a for a in routable), identity.host)


def _lost_leader_events(number: int, leader: LeaderRecord, now: float) -> list[Event]:
    """Return the events that make a lost leader look like any member that connected and was lost."""
    return [
        AgentConnected(agent=number, host=leader.host, probe_address="", rank=leader.rank),
        ProcessSampled(
            pid=process_key(number, leader.pid), worker=number << 12, sampled_at=now, state="S", cpu=0.0,
            rank=leader.rank, host=leader.host,
        ),
        AgentDisconnected(agent=number, disconnected_at=now),
    ]  # fmt: skip


def _source_address(address: tuple[str, int]) -> str:
    """Return our own address on the route to ``address``, "" if there is none.

    Connecting a UDP socket only selects a route; no packet is sent.
    """
    try:
        family, kind, _, _, sockaddr = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as sock:
            sock.connect(sockaddr)
            return str(sock.getsockname()[0])
    except OSError:
        return ""
