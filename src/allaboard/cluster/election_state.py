"""The state of one host in the election: decides what to do about the lease. No socket and no clock."""

from __future__ import annotations

from enum import Enum, auto

from allaboard.cluster.transport.leader_lease import LEASE_S, LeaderRecord

EMPTY_READS_BEFORE_CANDIDACY = 2
"""Reads that must find the lease free before a host whose leader still answers becomes a candidate: the
holder may only have been slow to renew it, and acquires it again."""
RANK_0_HEAD_START_S = 2.0
"""Seconds that other hosts wait for rank 0 to become the first leader."""


class ElectionStep(Enum):
    """The next step of a host in the election."""

    WAIT = auto()
    """Nothing."""
    STAND = auto()
    """Become a candidate: open a port, and try to acquire the lease."""
    FOLLOW = auto()
    """Connect to another leader than before."""
    RESIGN = auto()
    """Stop leading."""


class ElectionState:
    """The state of one host. Times are in seconds (CLOCK_MONOTONIC)."""

    def __init__(self, session: str, rank: int = 0) -> None:
        self._session = session
        self._head_start_s = RANK_0_HEAD_START_S if rank else 0.0
        self._first_look_at: float | None = None
        self._empty_reads = 0
        self._store_lost_at: float | None = None
        self.leader: LeaderRecord | None = None
        """The newest known leader, which may be this host; None if there was none."""
        self.former_leaders: list[LeaderRecord] = []
        """Other hosts that led before and do not any more."""
        self.is_closed = False
        """True once training has begun or the verdict is known: nobody takes over any more."""

    def observe_lease(
        self, now: float, holder: LeaderRecord | None, is_linked: bool
    ) -> ElectionStep:
        """Take note of the lease as read by a host that does not lead; ``is_linked``: its leader answers
        it."""
        self._store_lost_at = None
        if holder is None:
            # Counted rather than timed: reads are regular while the store answers, and an outage of the store
            # must not count.
            self._empty_reads += 1
            self._first_look_at = now if self._first_look_at is None else self._first_look_at
            is_head_start = self.leader is None and now - self._first_look_at < self._head_start_s
            must_wait = (
                self.is_closed
                or is_head_start
                or (is_linked and self._empty_reads < EMPTY_READS_BEFORE_CANDIDACY)
            )
            return ElectionStep.WAIT if must_wait else ElectionStep.STAND
        self._empty_reads = 0
        if holder.session == self._session:  # we have acquired it, but the answer was lost
            return ElectionStep.STAND
        if self.leader is not None and self.leader.session == holder.session:
            self.leader = holder
            return ElectionStep.WAIT
        self._replace_leader(holder)
        return ElectionStep.FOLLOW

    def record_win(self, record: LeaderRecord) -> None:
        """Note that this host has acquired the lease."""
        self._replace_leader(record)

    def record_renewal(self, is_renewed: bool) -> ElectionStep:
        """Note that the leader renewed its lease, or that the lease was lost: then it must acquire it
        again."""
        self._store_lost_at = None
        return ElectionStep.WAIT if is_renewed else ElectionStep.STAND

    def record_store_error(self, now: float, met_count: int, connected_count: int) -> ElectionStep:
        """Note that the leader cannot reach the lease store.

        ``met_count`` agents have ever connected, ``connected_count`` still are. While any is connected the
        leader goes on: perhaps nobody reaches the store. Once the election is closed nobody else can lead, so
        it goes on, too.
        """
        if self._store_lost_at is None:
            self._store_lost_at = now
        is_alone = met_count > 0 and connected_count == 0 and not self.is_closed
        return (
            ElectionStep.RESIGN
            if is_alone and now - self._store_lost_at >= LEASE_S
            else ElectionStep.WAIT
        )

    def record_resignation(self, successor: LeaderRecord | None) -> None:
        """Note that this host stopped leading, and who leads now, if that is known."""
        self.leader = successor
        self._store_lost_at = None
        self._empty_reads = 0

    def _replace_leader(self, successor: LeaderRecord) -> None:
        previous, self.leader = self.leader, successor
        # A host that leads again is no former leader any more, whichever agent of it.
        self.former_leaders = [s for s in self.former_leaders if s.host != successor.host]
        if previous is not None and previous.session not in (successor.session, self._session):
            self.former_leaders.append(previous)
        self._empty_reads = 0
