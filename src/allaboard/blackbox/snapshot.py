"""What one look into a black box shows. Times are CLOCK_MONOTONIC seconds."""

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
    """One look into a black box. ``intervals`` are the last step times (s), oldest first; ``inside``
    the time (s) that it has been inside operations in all."""

    phase: int
    phase_since: float
    round: int
    detail: str = ""
    step: int = 0
    step_at: float = 0.0
    intervals: tuple[float, ...] = ()
    op: Op | None = None
    ops: int = 0
    inside: float = 0.0
    groups: tuple[GroupState, ...] = ()
    declared: Declared | None = None
    raised: Raised | None = None
    notes: dict[str, str] = {}
    pace: Pace | None = None
    spent: Spent = Spent()
    loops: tuple[Loop, ...] = ()
    loss: Loss | None = None
    numbered: Numbered | None = None
    kept: Saves | None = None
    checks: tuple[Check, ...] = ()
