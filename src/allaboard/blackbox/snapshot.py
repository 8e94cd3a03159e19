"""One reading of a black box. Times are CLOCK_MONOTONIC seconds."""

from __future__ import annotations

import msgspec

from allaboard.facts import Declared, DeviceMemory, GroupState, Op, Raised
from allaboard.facts.bounds import Instant, Measure, PhaseNumber, Whole
from allaboard.facts.time_shares import Check, Loop, Loss, Numbered, Pace, Saves, Spent


class BoxReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One reading of a black box."""

    phase: PhaseNumber
    """Number of the phase that the member is in."""
    phase_since: Measure
    """When it entered that phase."""
    round: Whole
    """Which init of its process the phase belongs to: 1, 2, …."""
    detail: str = ""
    step: Whole = 0
    step_at: Instant = 0.0
    """When the last step ended."""
    intervals: tuple[Measure, ...] = ()
    """Times of the last steps in seconds, oldest first."""
    op: Op | None = None
    """The operation that it is inside of, or None."""
    ops: Whole = 0
    """How many operations it has entered in all."""
    inside: Measure = 0.0
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
    last_loss: Measure | None = None
    """The last finite loss; None if none was seen."""
    memory: DeviceMemory | None = None
    """Its memory on an accelerator; None if no framework counts any."""
    numbered: Numbered | None = None
    kept: Saves | None = None
    checks: tuple[Check, ...] = ()
