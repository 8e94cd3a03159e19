"""Stragglers among members that step together: the straggler is the one that waits least for the others.

In a synchronous job all steps last equally long. A slow member finishes its part last and does not wait; the
others wait for it, each for as long as it is ahead. What the straggler did in that time is named only if one
part of the step explains `EXPLAINED_SHARE` of it.

A small lag can be told from chance after ten seconds, a large one after three: a member that makes the others
wait for half of every step is named then. Ranks that take turns at being slow are no stragglers; the recent
past shows which those are.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from statistics import median

import msgspec

from allaboard.analysis.parameter_servers import has_parameter_servers
from allaboard.analysis.performance.recent_window import MIN_RECENT_SPAN_S
from allaboard.facts import JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

MIN_PACE_SPAN_S = 10.0
"""Seconds of measured steps needed for a verdict."""
MIN_PACE_STEPS = 16
"""Measured steps needed for a verdict."""
MAX_STEP_RATIO = 1.15
"""Largest factor between the median steps of members that step together."""
MIN_LAG_SHARE = 0.25
"""Share of a step that the others must wait for the slow members."""
LARGE_LAG_SHARE = 0.5
"""Share of a step that they must wait for a verdict after a few seconds."""
MIN_LAG_S = 0.003
"""Seconds of a step that they must wait."""
EXPLAINED_SHARE = 0.8
"""Share of the lag that one part of the step must explain to be named."""
TURN_SHARE = 0.75
"""Share of the way from the others' own time to the slow members' from which a sample counts as slow."""
THREAD_POOL_FRAMEWORKS = frozenset(("tensorflow", "jax"))
"""Frameworks that compute in thread pools. Of the time in their calls, the CPU time of the whole process
counts as work, which includes the threads that prepare data even while the member waits for others."""
MIN_OUTSIDE_SHARE = 0.5
"""Share of the lag that must be seen outside such calls."""
SHADOWS_NOTE = "shadows its peers"
"""Note of a rank that took part in the steps of others without data of its own (torch's `Join`)."""


class StepPart(StrEnum):
    """Parts of a step in which a member may lose time."""

    INPUT = "loading data"
    OWN = "its own code outside data loading and collectives"


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """Slow members for which all others wait in each step."""

    slow: tuple[Member, ...]
    """The stragglers."""
    waiting: tuple[Member, ...]
    """The members that wait for them."""
    seconds: float
    """Seconds of each step that the others wait."""
    step: float
    """Length of a step (s)."""
    part: StepPart | None
    """Part of the step in which the stragglers lose the time; None if no single part explains it."""
    slow_took: float
    """Seconds of a step that the stragglers spend in that part."""
    others_took: float
    """Seconds of a step that the others spend in it."""

    @property
    def factor(self) -> float:
        """Return how many times as long as the others the stragglers take for their own part of a step."""
        return median(m.pace.own_time for m in self.slow) / max(1e-6, _median_own(self.waiting))


@cached_per_view
def stepping_members(view: JobView) -> tuple[Member, ...]:
    """Return the training members if all have been measured for long enough, else ()."""
    members = _training_members_at_pace(view)
    if any(m.pace.span < MIN_PACE_SPAN_S or m.pace.steps < MIN_PACE_STEPS for m in members):
        return ()
    return members


@cached_per_view
def recently_stepping_members(view: JobView) -> tuple[Member, ...]:
    """Return the training members with their recent ``pace``, which is known after a few seconds.

    It shows only a large lag reliably.
    """
    members = _training_members_at_pace(view)
    if any(
        m.recent_pace.span < MIN_RECENT_SPAN_S or m.recent_pace.steps < MIN_PACE_STEPS
        for m in members
    ):
        return ()
    return tuple(
        msgspec.structs.replace(m, pace=m.recent_pace, load=m.recent_load) for m in members
    )


@cached_per_view
def _training_members_at_pace(view: JobView) -> tuple[Member, ...]:
    members = tuple(m for m in view.alive if not m.launcher)
    if not any(m.pace.steps for m in members):
        return ()
    if view.stalled or view.ending or has_parameter_servers(view):
        return ()
    if any(
        m.phase is not Phase.TRAINING or m.is_stopped or SHADOWS_NOTE in m.notes for m in members
    ):
        return ()
    return members


@cached_per_view
def find_lag(view: JobView) -> Lag | None:
    """Return the stragglers; None if there are none, or the members do not step together."""
    return _find_lag_among(stepping_members(view), MIN_LAG_SHARE) or (
        _find_lag_among(recently_stepping_members(view), LARGE_LAG_SHARE)
        if _may_lag_much(view)
        else None
    )


def _may_lag_much(view: JobView) -> bool:
    """Return True if the last seconds are worth a closer look, which is costly for thousands of members."""
    waits = [m.recent_pace.sync for m in view.alive]
    steps = [m.recent_pace.step for m in view.alive]
    return bool(waits) and max(waits) - min(waits) >= LARGE_LAG_SHARE * median(steps) > 0.0


def _find_lag_among(stepping: tuple[Member, ...], gap: float) -> Lag | None:
    """Return the stragglers for which the others wait at least the share ``gap`` of a step, or None."""
    members = sorted(stepping, key=lambda m: m.pace.sync)
    if len(members) < 2:
        return None
    steps = [m.pace.step for m in members]
    step = median(steps)
    spread = members[-1].pace.sync - members[0].pace.sync
    if max(steps) > MAX_STEP_RATIO * min(steps) or spread < max(MIN_LAG_S, gap * step):
        return None
    # Sorted by waiting time, the widest gap divides the slow members from those that wait for them.
    gaps = [b.pace.sync - a.pace.sync for a, b in pairwise(members)]
    widest_gap = max(range(len(gaps)), key=gaps.__getitem__)
    slow, waiting = tuple(members[: widest_gap + 1]), tuple(members[widest_gap + 1 :])
    seconds = median(m.pace.sync for m in waiting) - median(m.pace.sync for m in slow)
    slow = tuple(m for m in slow if _is_own_work(m, waiting))
    # The slow ones must be a minority, or it is the normal spread of the job.
    if not 0 < len(slow) <= len(waiting) or gaps[widest_gap] < max(MIN_LAG_S, gap * step):
        return None
    if _take_turns(slow, waiting):
        return None
    shares = ((StepPart.INPUT, _median_input), (StepPart.OWN, _median_rest), (None, _median_own))
    # The first part that explains enough of the lag; the last entry matches always.
    part, slow_took, others_took = next(
        (part, measure(slow), measure(waiting))
        for part, measure in shares
        if part is None or measure(slow) - measure(waiting) >= EXPLAINED_SHARE * seconds
    )
    return Lag(
        slow=slow,
        waiting=waiting,
        seconds=seconds,
        step=step,
        part=part,
        slow_took=slow_took,
        others_took=others_took,
    )


def _is_own_work(member: Member, waiting: tuple[Member, ...]) -> bool:
    """Return True if the member's lag is its own work, and not that of threads that prepare data meanwhile.

    Its own are the time for which it waited for data, and the time that it was outside of the framework's
    calls while the others were in them.
    """
    if member.framework not in THREAD_POOL_FRAMEWORKS:
        return True
    behind = median(m.pace.sync for m in waiting) - member.pace.sync
    outside = (
        median(m.load.operation_share for m in waiting) - member.load.operation_share
    ) * member.pace.step
    data = member.pace.input - _median_input(waiting)
    return data >= EXPLAINED_SHARE * behind or outside >= MIN_OUTSIDE_SHARE * behind


def _take_turns(slow: tuple[Member, ...], waiting: tuple[Member, ...]) -> bool:
    """Return True if members take turns: some of the waiting were slow just before, and the slow were not."""
    slow_own, others_own = _median_own(slow), _median_own(waiting)
    margin = TURN_SHARE * (slow_own - others_own)
    return max(m.pace.high for m in waiting) >= others_own + margin and any(
        0.0 < m.pace.low <= slow_own - margin for m in slow
    )


def format_step_time(seconds: float) -> str:
    """Return a step's time or a part of it for people: "62 ms", "1.3 s"."""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _median_own(members: tuple[Member, ...]) -> float:
    return median(m.pace.own_time for m in members)


def _median_input(members: tuple[Member, ...]) -> float:
    return median(m.pace.input for m in members)


def _median_rest(members: tuple[Member, ...]) -> float:
    return median(max(0.0, m.pace.own_time - m.pace.input) for m in members)
