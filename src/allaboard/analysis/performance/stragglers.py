"""Who is slow, among members that step together: the culprit is who waits least for the others.

In a synchronous job all steps last equally long. Whoever is slow has done its part last, and does not
wait; the others wait for it, each as long as it is behind. What it did in that time is named only where
one phase explains `COVERED` of it.

A little is told from chance in ten seconds, much in three: who makes the others wait for half of every step
is named then. Ranks that take turns in being slow are none of them: that is told by who was slow before.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from statistics import median

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import has_servers
from allaboard.analysis.performance.recent_window import SPAN as SOON
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

SPAN = 10.0
"""Seconds that must have been looked at, ..."""
STEPS = 16
"""... and steps."""
TOGETHER = 1.15
"""Members step together whose median steps differ by no more than this factor."""
GAP = 0.25
"""Share of a step that the others must wait for the slow ones, ..."""
MUCH = 0.5
"""... or which is much, ..."""
LEAST = 0.003
"""... and seconds."""
COVERED = 0.8
TURN = 0.75
"""Of the way from the others' own time to the slow ones': from there on a look counts as slow."""
POOLS = frozenset(("tensorflow", "jax"))
"""Frameworks that compute in threads of their own: of the time in their calls, the CPU time of the whole
process counts as work. The threads that prepare data run there too, for whoever waits for others as well."""
OUTSIDE = 0.5
"""Of what a slow one is behind, so much must be seen outside of such calls."""
SHADOWS = "shadows its peers"
"""The note of a rank that has taken part in others' steps without data of its own (torch's `Join`)."""


class Part(StrEnum):
    """Parts of a step."""

    INPUT = "loading data"
    OWN = "its own code outside data loading and collectives"


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """``slow`` members, for whom ``waiting`` wait ``seconds`` of each ``step`` (s); ``part`` is where the
    slow ones lose it, None where no one part explains it; ``took`` seconds a step of the slow there,
    ``usual`` of the others."""

    slow: tuple[Member, ...]
    waiting: tuple[Member, ...]
    seconds: float
    step: float
    part: Part | None
    took: float
    usual: float

    @property
    def factor(self) -> float:
        """How many times as long as the others the slow ones take for their own part of a step."""
        return median(m.pace.own for m in self.slow) / max(1e-6, _own(self.waiting))


@cached_per_view
def stepping(view: JobView) -> tuple[Member, ...]:
    """The members that train, where all have been looked at long enough; () where not."""
    members = _training(view)
    if any(m.pace.span < SPAN or m.pace.steps < STEPS for m in members):
        return ()
    return members


@cached_per_view
def stepping_lately(view: JobView) -> tuple[Member, ...]:
    """As `stepping`, after some seconds: the ``pace`` of each is its recent one, and shows only what is
    much."""
    members = _training(view)
    if any(m.recent_pace.span < SOON or m.recent_pace.steps < STEPS for m in members):
        return ()
    return tuple(
        msgspec.structs.replace(m, pace=m.recent_pace, load=m.recent_load) for m in members
    )


@cached_per_view
def _training(view: JobView) -> tuple[Member, ...]:
    members = tuple(m for m in view.alive if not m.launcher)
    if not any(m.pace.steps for m in members):
        return ()
    if view.stalled or view.ending or has_servers(view):
        return ()
    if any(m.phase is not Phase.TRAINING or m.stopped or SHADOWS in m.notes for m in members):
        return ()
    return members


@cached_per_view
def lag(view: JobView) -> Lag | None:
    """Who is slow; None where nobody is, or the members do not step together."""
    return _among(stepping(view), GAP) or (
        _among(stepping_lately(view), MUCH) if _much(view) else None
    )


def _much(view: JobView) -> bool:
    """Whether the last seconds are worth a look: of thousands of members, that costs something."""
    waits = [m.recent_pace.sync for m in view.alive]
    steps = [m.recent_pace.step for m in view.alive]
    return bool(waits) and max(waits) - min(waits) >= MUCH * median(steps) > 0.0


def _among(stepping: tuple[Member, ...], gap: float) -> Lag | None:
    """Where the others wait this share of a step for the slow."""
    members = sorted(stepping, key=lambda m: m.pace.sync)
    if len(members) < 2:
        return None
    steps = [m.pace.step for m in members]
    step = median(steps)
    apart = members[-1].pace.sync - members[0].pace.sync
    if max(steps) > TOGETHER * min(steps) or apart < max(LEAST, gap * step):
        return None
    jumps = [b.pace.sync - a.pace.sync for a, b in pairwise(members)]
    widest = max(range(len(jumps)), key=jumps.__getitem__)
    slow, waiting = tuple(members[: widest + 1]), tuple(members[widest + 1 :])
    seconds = median(m.pace.sync for m in waiting) - median(m.pace.sync for m in slow)
    slow = tuple(m for m in slow if _works(m, waiting))
    if not 0 < len(slow) <= len(waiting) or jumps[widest] < max(LEAST, gap * step):
        return None
    if _in_turn(slow, waiting):
        return None
    shares = ((Part.INPUT, _input), (Part.OWN, _rest), (None, _own))
    part, took, usual = next(
        (part, takes(slow), takes(waiting))
        for part, takes in shares
        if part is None or takes(slow) - takes(waiting) >= COVERED * seconds
    )
    return Lag(
        slow=slow,
        waiting=waiting,
        seconds=seconds,
        step=step,
        part=part,
        took=took,
        usual=usual,
    )


def _works(member: Member, waiting: tuple[Member, ...]) -> bool:
    """Whether what it is behind is its own work, and not that of threads that prepare data while it waits:
    time for which it waited for data, or in which it was outside of calls and the others in them."""
    if member.framework not in POOLS:
        return True
    behind = median(m.pace.sync for m in waiting) - member.pace.sync
    outside = (median(m.load.inside for m in waiting) - member.load.inside) * member.pace.step
    data = member.pace.input - _input(waiting)
    return data >= COVERED * behind or outside >= OUTSIDE * behind


def _in_turn(slow: tuple[Member, ...], waiting: tuple[Member, ...]) -> bool:
    """Whether those who wait now were slow themselves for some of the last seconds, and the slow ones were
    not."""
    slowly, usual = _own(slow), _own(waiting)
    way = TURN * (slowly - usual)
    return max(m.pace.high for m in waiting) >= usual + way and any(
        0.0 < m.pace.low <= slowly - way for m in slow
    )


def _own(members: tuple[Member, ...]) -> float:
    return median(m.pace.own for m in members)


def _input(members: tuple[Member, ...]) -> float:
    return median(m.pace.input for m in members)


def _rest(members: tuple[Member, ...]) -> float:
    return median(max(0.0, m.pace.own - m.pace.input) for m in members)
