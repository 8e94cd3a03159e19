"""A training that went back."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Who


class Setback(msgspec.Struct, frozen=True, kw_only=True):
    """At ``at`` (s) the framework's own number of steps went back from ``high``, the last that any member
    had seen, to ``low``; ``who`` ended since the time before, in whose memory the variables or the
    session that restores them had been, and ``how``."""

    at: float
    high: int
    low: int
    who: tuple[Who, ...] = ()
    how: str = ""

    @property
    def lost(self) -> int:
        return self.high - self.low
