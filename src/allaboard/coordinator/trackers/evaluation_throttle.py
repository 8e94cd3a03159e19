"""When a job of many hosts is looked at. Pure but for its memory."""

from __future__ import annotations

THROTTLED_FROM_MEMBERS, MEMBERS_PER_SECOND = 128, 2_500
"""Members from which a look is not taken at every event, and how many of them go to a second between
two looks."""
JOINING_INTERVAL_S = 0.5
"""Seconds between two looks, at the least, at so many while more of them are known to come."""


class EvaluationThrottle:
    """A look at thousands takes long, and they come one by one: looks keep a distance that grows with
    their number. Where something is decided now, the job is looked at once."""

    def __init__(self) -> None:
        self._stage: tuple[object, ...] = ()
        self._next = 0.0
        self.evaluations = 0
        """Looks so far."""

    def is_evaluation_due(
        self, now: float, members: int, stage: tuple[object, ...], least: float = 0.0
    ) -> bool:
        """Whether to look now; ``stage`` is another one whenever that must not wait. The next look is not
        sooner than in ``least`` s."""
        if members >= THROTTLED_FROM_MEMBERS and stage == self._stage and now < self._next:
            return False
        self._stage, self._next = stage, now + max(least, members / MEMBERS_PER_SECOND)
        self.evaluations += 1
        return True

    def mark_evaluated(self, stage: tuple[object, ...]) -> None:
        """What a look itself brought about needs no other look."""
        self._stage = stage
