"""One reading of a black box. Times are CLOCK_MONOTONIC seconds."""

from __future__ import annotations

import msgspec

from allaboard.facts import (
    Check,
    Declared,
    GroupState,
    Loop,
    Loss,
    Numbered,
    Op,
    Pace,
    Raised,
    Saves,
    Spent,
)


class BoxReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One reading of a black box."""

    phase: int
    """Number of the phase that the member is in."""
    phase_since: float
    """When it entered that phase."""
    round: int
    """Which init of its process the phase belongs to: 1, 2, …."""
    detail: str = ""
    step: int = 0
    step_at: float = 0.0
    """When the last step ended."""
    intervals: tuple[float, ...] = ()
    """Times of the last steps in seconds, oldest first."""
    op: Op | None = None
    """The operation that it is inside of, or None."""
    ops: int = 0
    """How many operations it has entered in all."""
    inside: float = 0.0
    """Seconds that it has been inside operations in all."""
    groups: tuple[GroupState, ...] = ()
    declared: Declared | None = None
    raised: Raised | None = None
    notes: dict[str, str] = {}
    """Notes of the probe's hooks, by name."""
    pace: Pace | None = None
    spent: Spent = Spent()
    loops: tuple[Loop, ...] = ()
    loss: Loss | None = None
    numbered: Numbered | None = None
    kept: Saves | None = None
    checks: tuple[Check, ...] = ()
