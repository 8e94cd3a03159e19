"""Who leads, where any host may: what this one does about it. Pure but for what it remembers."""

from __future__ import annotations

from enum import Enum, auto

from allaboard.cluster.transport.leader_lease import LEASE_S, LeaderRecord

EMPTY_READS_BEFORE_CANDIDACY = 2
"""Times that the seat is seen empty before a host whose leader still answers stands: the holder may have
been slow, and takes it again."""


RANK_0_HEAD_START_S = 2.0
"""Seconds that the others give rank 0 to be the first, where nobody has led yet."""


class ElectionStep(Enum):
    """What is to be done now."""

    WAIT = auto()
    STAND = auto()
    """Open a door, and try to take the seat."""
    FOLLOW = auto()
    """Go to another leader than before."""
    RESIGN = auto()
    """Lead no more."""


class ElectionState:
    """The state of one host. Times in seconds."""

    def __init__(self, session: str, rank: int = 0) -> None:
        self._session = session
        self._head_start_s = RANK_0_HEAD_START_S if rank else 0.0
        self._first_look_at: float | None = None
        self._empty_reads = 0
        self._store_lost_at: float | None = None
        self.leader: LeaderRecord | None = None
        self.former_leaders: list[LeaderRecord] = []
        """Who led before, was not we, and does not any more."""
        self.is_closed = False
        """Training has begun, or the verdict is known: nobody takes over any more."""

    def is_leader(self) -> bool:
        return self.leader is not None and self.leader.session == self._session

    def observe_lease(
        self, now: float, holder: LeaderRecord | None, is_linked: bool
    ) -> ElectionStep:
        """The seat was looked at by a host that does not lead; ``linked``: its leader hears it."""
        self._store_lost_at = None
        if holder is None:
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
        if holder.session == self._session:  # the answer to our attempt was lost
            return ElectionStep.STAND
        if self.leader is not None and self.leader.session == holder.session:
            self.leader = holder
            return ElectionStep.WAIT
        self._replace_leader(holder)
        return ElectionStep.FOLLOW

    def record_win(self, record: LeaderRecord) -> None:
        """It is ours."""
        self._replace_leader(record)

    def record_renewal(self, is_renewed: bool) -> ElectionStep:
        """The leader renewed its lease, or could not: then it is to take the seat again, or to resign."""
        self._store_lost_at = None
        return ElectionStep.WAIT if is_renewed else ElectionStep.STAND

    def record_store_error(self, now: float, met_count: int, connected_count: int) -> ElectionStep:
        """The leader cannot reach the seat; ``met`` hosts have been here, ``here`` still are. As long as
        it is heard it goes on: perhaps nobody reaches the seat. Once it is ``closed`` nobody else leads, and
        what the others told is all that is known of them."""
        if self._store_lost_at is None:
            self._store_lost_at = now
        is_alone = met_count > 0 and connected_count == 0 and not self.is_closed
        return (
            ElectionStep.RESIGN
            if is_alone and now - self._store_lost_at >= LEASE_S
            else ElectionStep.WAIT
        )

    def record_resignation(self, successor: LeaderRecord | None) -> None:
        self.leader = successor
        self._store_lost_at = None
        self._empty_reads = 0

    def _replace_leader(self, successor: LeaderRecord) -> None:
        previous, self.leader = self.leader, successor
        self.former_leaders = [s for s in self.former_leaders if s.host != successor.host]
        if previous is not None and previous.session not in (successor.session, self._session):
            self.former_leaders.append(previous)
        self._empty_reads = 0
