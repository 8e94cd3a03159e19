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
        self._later = RANK_0_HEAD_START_S if rank else 0.0
        self._began: float | None = None
        self._empty = 0
        self._lost_at: float | None = None
        self.leader: LeaderRecord | None = None
        self.former_leaders: list[LeaderRecord] = []
        """Who led before, was not we, and does not any more."""
        self.is_closed = False
        """Training has begun, or the verdict is known: nobody takes over any more."""

    def is_leader(self) -> bool:
        return self.leader is not None and self.leader.session == self._session

    def observe_lease(self, now: float, seat: LeaderRecord | None, linked: bool) -> ElectionStep:
        """The seat was looked at by a host that does not lead; ``linked``: its leader hears it."""
        self._lost_at = None
        if seat is None:
            self._empty += 1
            self._began = now if self._began is None else self._began
            early = self.leader is None and now - self._began < self._later
            waits = (
                self.is_closed or early or (linked and self._empty < EMPTY_READS_BEFORE_CANDIDACY)
            )
            return ElectionStep.WAIT if waits else ElectionStep.STAND
        self._empty = 0
        if seat.session == self._session:  # the answer to our attempt was lost
            return ElectionStep.STAND
        if self.leader is not None and self.leader.session == seat.session:
            self.leader = seat
            return ElectionStep.WAIT
        self._left(seat)
        return ElectionStep.FOLLOW

    def record_win(self, seat: LeaderRecord) -> None:
        """It is ours."""
        self._left(seat)

    def record_renewal(self, kept: bool) -> ElectionStep:
        """The leader renewed its lease, or could not: then it is to take the seat again, or to resign."""
        self._lost_at = None
        return ElectionStep.WAIT if kept else ElectionStep.STAND

    def record_store_error(self, now: float, met: int, here: int) -> ElectionStep:
        """The leader cannot reach the seat; ``met`` hosts have been here, ``here`` still are. As long as
        it is heard it goes on: perhaps nobody reaches the seat. Once it is ``closed`` nobody else leads, and
        what the others told is all that is known of them."""
        if self._lost_at is None:
            self._lost_at = now
        alone = met > 0 and here == 0 and not self.is_closed
        return (
            ElectionStep.RESIGN if alone and now - self._lost_at >= LEASE_S else ElectionStep.WAIT
        )

    def record_resignation(self, seat: LeaderRecord | None) -> None:
        self.leader = seat
        self._lost_at = None
        self._empty = 0

    def _left(self, new: LeaderRecord) -> None:
        before, self.leader = self.leader, new
        self.former_leaders = [s for s in self.former_leaders if s.host != new.host]
        if before is not None and before.session not in (new.session, self._session):
            self.former_leaders.append(before)
        self._empty = 0
