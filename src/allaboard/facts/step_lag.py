"""Which members end their steps later than others, and what looks at their stacks show meanwhile.

Both matter only where the time that members wait for each other cannot be measured: calls that return before
they are over, as those of NCCL do. All times are seconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import msgspec

from allaboard.facts.bounds import Instant, Measure
from allaboard.facts.stack import Frame


class StepLag(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far a member is behind the first of those on its host that step together with it."""

    behind: Measure
    """Time by which it ends a step later (s): the median."""
    least: Measure
    """What that is in a quarter of the samples at most (s)."""
    step: Measure
    """Mean duration of a step of all these members (s)."""
    span: Measure
    """Time over which samples were taken (s)."""
    since: Instant
    """Since when one of these members has been behind without interruption."""


class StackLook(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the stack of a member that trains."""

    taken_at: Instant
    """When it was taken."""
    place: Frame | None
    """Innermost frame of the user's own code; None if there was none."""
    waits: bool
    """True if the member waited for others, or for a result that its device has yet to compute."""
