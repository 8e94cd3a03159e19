"""How often the rules are run on a job of many hosts. Pure but for its memory."""

from __future__ import annotations

THROTTLED_FROM_MEMBERS = 128
"""Number of members from which the job is not evaluated at every event."""
MEMBERS_PER_SECOND = 2_500
"""Members that may be evaluated in a second: the interval between two evaluations grows with their number."""
JOINING_INTERVAL_S = 0.5
"""Least interval between two evaluations of so many members while more of them are expected."""


class EvaluationThrottle:
    """Decides when to evaluate a job. The evaluation of thousands of members takes long, and they join one
    by one, so evaluations keep a distance. If something is decided now, the job is evaluated at once."""

    def __init__(self) -> None:
        self._stage: tuple[object, ...] = ()
        self._next_at = 0.0
        self.evaluations = 0
        """Evaluations so far."""

    def is_evaluation_due(
        self, now: float, members: int, stage: tuple[object, ...], min_interval_s: float = 0.0
    ) -> bool:
        """Return True if the job of so many ``members`` is to be evaluated now. ``stage`` changes with
        everything that must not wait. The next evaluation comes after ``min_interval_s`` at the earliest."""
        is_throttled = members >= THROTTLED_FROM_MEMBERS
        if is_throttled and stage == self._stage and now < self._next_at:
            return False
        self._stage = stage
        self._next_at = now + max(min_interval_s, members / MEMBERS_PER_SECOND)
        self.evaluations += 1
        return True

    def mark_evaluated(self, stage: tuple[object, ...]) -> None:
        """Remember the stage after an evaluation: what it changed itself needs no further evaluation."""
        self._stage = stage
