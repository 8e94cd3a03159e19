"""The election of the host where all meet: while the roll is called it may go, and another takes over.

The seat is in a place that outlives hosts (`meeting.seats`). Its holder renews it; who finds it empty
opens a door and tries to take it; all others go to the address that it names. Who led before and has
gone is told to all, as any other host is whose agent was lost.
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
"""Seconds between two looks at the seat: where there is a leader, and while there is none."""
FIRST_FORMER_LEADER_NUMBER = 1 << 20
"""Numbers of agents that led before; others count from 1."""


class Election:
    """``role`` is this host's, ``toward`` is where the seat is kept (host, port): the address by which this
    host reaches it is the one by which it is reached."""

    def __init__(self, role: MembershipRole, seats: LeaseStore, toward: tuple[str, int]) -> None:
        self._role = role
        self._seats = seats
        self._toward = toward
        self._over = False
        self.state = ElectionState(role.session, role.launcher_info.rank)
        self.store_error: LeaseStoreError | None = None
        self.notes: list[str] = []

    async def find_leader_address(self) -> str:
        """Of who leads; raises LeaseStoreError where that cannot be known."""
        if self.state.leader is None and self.store_error is not None:
            raise self.store_error
        return self.state.leader.numeric_address if self.state.leader is not None else ""

    async def run_election(self) -> None:
        """Until `leave`. Nobody stands before its worker was seen: the seat names it."""
        while not self._role.worker and not self._over:
            await asyncio.sleep(LEADERLESS_POLL_S)
        while not self._over:
            try:
                await self._turn()
                self.store_error = None
            except LeaseStoreError as error:
                self.store_error = error
                self._troubled()
            calm = self._role.is_linked or self._role.leader is not None
            await asyncio.sleep(LED_POLL_S if calm else LEADERLESS_POLL_S)

    def give_up_lease(self) -> None:
        """The next leader need not wait for our lease to end."""
        self._over = True
        self._seats.release_lease()

    async def _turn(self) -> None:
        role, ballot = self._role, self.state
        leader = role.leader
        if leader is not None:
            lost = ballot.record_renewal(await self._seats.renew_lease()) is ElectionStep.STAND
            if lost and not await self._seats.acquire_lease(await self._seat(leader)):
                self._resign(await self._seats.read_leader())
            return
        seat = await self._seats.read_leader()
        match ballot.observe_lease(time.monotonic(), seat, role.is_linked):
            case ElectionStep.STAND:
                await self._stand()
            case ElectionStep.FOLLOW:
                self._follow()

    def _troubled(self) -> None:
        leader = self._role.leader
        if leader is None:
            if self._role.follower is None:
                self._role.follow_new_leader()  # which tells how its attempts stand
        else:
            step = self.state.record_store_error(
                time.monotonic(), leader.met_count, leader.connected_count
            )
            if step is ElectionStep.RESIGN:
                self._resign(None)

    async def _stand(self) -> None:
        role = self._role
        leader = role.make_candidate()
        taken = False
        try:
            await leader.listener.open_port(0)
            seat = await self._seat(leader)
            taken = await self._seats.acquire_lease(seat)
        finally:
            if not taken:
                leader.close()
        if not taken:
            return
        self.state.record_win(seat)
        events: list[Event] = []
        for number, before in enumerate(self.state.former_leaders, FIRST_FORMER_LEADER_NUMBER):
            self.notes.append(f"{before.host}, where all met, has gone; {role.host} takes over")
            # Should it come again, it has its number again.
            leader.listener.reserve_number(before.session, number)
            events += _lost(number, before, time.monotonic())
        role.take_lead(leader, events)

    def _follow(self) -> None:
        seat, gone = self.state.leader, self.state.former_leaders
        assert seat is not None
        if gone:
            self.notes.append(f"{gone[-1].host}, where all met, has gone; {seat.host} takes over")
        self._role.follow_new_leader()

    def _resign(self, seat: LeaderRecord | None) -> None:
        self.state.record_resignation(seat)
        self._role.resign_lead()

    async def _seat(self, leader: Leader) -> LeaderRecord:
        who = self._role.identity()
        loop = asyncio.get_running_loop()
        own = await loop.run_in_executor(None, _own_address, self._toward, who)
        return LeaderRecord(
            address=f"{own}:{leader.listener.port}",
            session=self._role.session,
            host=who.host,
            job=who.job,
            rank=who.rank,
            pid=self._role.worker,
        )


def _own_address(toward: tuple[str, int], who: Identity) -> str:
    """By which the others reach this host; its name where only loopback addresses are known."""
    found = [_toward(toward), Address.from_endpoint(who.probe_address).host]
    usual = [a for a in found if a and not a.startswith(("127.", "0.", "::1"))]
    return next((f"[{a}]" if ":" in a else a for a in usual), who.host)


def _lost(number: int, seat: LeaderRecord, now: float) -> list[Event]:
    """What is known of a leader that has gone, as of any member: it was there."""
    return [
        AgentConnected(agent=number, host=seat.host, data="", rank=seat.rank),
        ProcessSampled(
            pid=process_key(number, seat.pid), worker=number << 12, at=now, state="S", cpu=0.0,
            rank=seat.rank, host=seat.host,
        ),
        AgentDisconnected(agent=number, at=now),
    ]  # fmt: skip


def _toward(place: tuple[str, int]) -> str:
    """Our address on the way there; no packet is sent."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(*place, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as made:
            made.connect(where)
            return str(made.getsockname()[0])
    except OSError:
        return ""
