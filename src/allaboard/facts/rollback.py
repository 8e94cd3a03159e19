"""Trainings that went back to an earlier step."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Who


class Setback(msgspec.Struct, frozen=True, kw_only=True):
    """One time that the framework's own number of steps went back."""

    went_back_at: float
    """When (s)."""
    high: int
    """The last number that any member had seen before."""
    low: int
    """The number after."""
    who: tuple[Who, ...] = ()
    """Members that ended since the time before, in whose memory the variables or the session that
    restores them had been."""
    how: str = ""
    """How they ended."""

    @property
    def lost(self) -> int:
        """Number of steps that were lost."""
        return self.high - self.low
