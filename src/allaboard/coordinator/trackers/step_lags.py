"""By how much members end their steps later than the others of their host, if nothing else shows who waits.

The time that a member spends in blocking collectives tells who waits for whom. NCCL's return at once: there,
the member that is late to queue its part is the one for which the others' devices wait, and it is late to end
its step by the same time. Numbers of steps and the times at which they ended are compared:

    lag = (end - number * mean step) - the least of this among the members

which holds whatever step each of them was seen in, as long as they make the same steps at the same mean pace.
Members on one host are compared, whose clock is one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from statistics import median

import msgspec

from allaboard.analysis.performance.stragglers import MAX_STEP_RATIO, MIN_LAG_S, MIN_LAG_SHARE
from allaboard.facts import Member, Phase
from allaboard.facts.time_shares import StepLag

GLANCE_INTERVAL_S = 1.0
"""Time between two glances while nobody seems late."""
SAMPLE_INTERVAL_S, SAMPLED_MEMBERS = 0.25, 512
"""Time between two samples of so many members at most; of more it is longer in proportion."""
WINDOW_S = 20.0
"""Age up to which samples count."""
MIN_SPAN_S = 8.0
"""Time over which samples must have been taken."""
MAX_NUMBERS_APART = 64
"""Steps between the members' numbers up to which they can be making the same steps: a restarted member, which
counts anew, cannot be compared."""
MIN_CALLS_PER_STEP = 0.5
"""Collectives that a member must enter in a step: ranks that train alone and average now and then (local
SGD), or whose work differs, keep a lag for long in which nobody waits."""
MAX_WAITING_SHARE = 0.05
"""Share of a step in collectives up to which these tell nothing of the waiting."""

GLANCE_SHARE = 0.8
"""Share of the least lag from which a group is sampled at all: thousands of ranks must cost little."""
GLANCE_HOLDS_S = 5.0
"""Time for which a group is sampled after such a lag."""

_GroupKey = tuple[str, str]
"""Host, and the place where the members of a world met."""


class _Steps:
    """What was seen of one member's steps."""

    __slots__ = ("ends", "lags")

    def __init__(self) -> None:
        self.ends: deque[tuple[float, int, float, int]] = deque()
        """Time of the sample, number of the last step, when that ended, and collectives entered by then."""
        self.lags: deque[tuple[float, float]] = deque()
        """Time of the sample, and the lag."""

    def add_end(self, now: float, number: int, ended_at: float, calls: int) -> None:
        """Note the last step as of ``now``; a count that begins anew makes all that was seen void."""
        if self.ends and number < self.ends[-1][1]:
            self.ends.clear()
            self.lags.clear()
        self.ends.append((now, number, ended_at, calls))
        for samples in (self.ends, self.lags):
            while samples and samples[0][0] < now - WINDOW_S:
                samples.popleft()

    @property
    def mean_step(self) -> float:
        """Mean duration of the steps seen (s); 0 if there are none yet."""
        (_, old_step, old_end, _), (_, new_step, new_end, _) = self.ends[0], self.ends[-1]
        return (new_end - old_end) / (new_step - old_step) if new_step > old_step else 0.0

    @property
    def calls_per_step(self) -> float:
        """Collectives that the member entered in each of the steps seen; 0 if there are none yet."""
        (_, old_step, _, old_calls), (_, new_step, _, new_calls) = self.ends[0], self.ends[-1]
        return (new_calls - old_calls) / (new_step - old_step) if new_step > old_step else 0.0

    @property
    def span(self) -> float:
        """Time over which lags were sampled (s)."""
        return self.lags[-1][0] - self.lags[0][0] if self.lags else 0.0


class StepLags:
    """The lags of all members of a job."""

    def __init__(self) -> None:
        self._steps: dict[int, _Steps] = defaultdict(_Steps)
        self._sampled_at = float("-inf")
        self._late_since: dict[_GroupKey, float] = {}
        self._seems_late_at: dict[_GroupKey, float] = {}
        """When a glance at a group last showed a lag (s)."""
        self._lags: dict[int, StepLag] = {}

    def with_lags(self, now: float, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """Take in a sample, and return the members; with ``step_lag`` where one of a group is late."""
        interval = SAMPLE_INTERVAL_S * max(1.0, len(members) / SAMPLED_MEMBERS)
        if now - self._sampled_at >= (interval if self._seems_late_at else GLANCE_INTERVAL_S):
            self._sampled_at = now
            self._sample(now, members)
        if not self._lags:
            return members
        return tuple(
            msgspec.structs.replace(m, step_lag=lag)
            if (lag := self._lags.get(m.event_key)) is not None
            else m
            for m in members
        )

    def restart_window(self) -> None:
        """Forget all samples, since the agent was not scheduled for a while."""
        self._steps.clear()
        self._late_since.clear()
        self._seems_late_at.clear()
        self._lags = {}

    def _sample(self, now: float, members: tuple[Member, ...]) -> None:
        groups: dict[_GroupKey, list[Member]] = defaultdict(list)
        for member in members:
            if _steps_with_others(member):
                assert member.declared is not None
                groups[member.who.host, member.declared.place].append(member)
        self._lags = {}
        for group_key, group in groups.items():
            if _seems_late(group):
                self._seems_late_at[group_key] = now
        self._seems_late_at = {
            k: seen_at
            for k, seen_at in self._seems_late_at.items()
            if now - seen_at < GLANCE_HOLDS_S and k in groups
        }
        late_groups = {k: groups[k] for k in self._seems_late_at}
        keys = {m.event_key for g in late_groups.values() for m in g}
        for key in self._steps.keys() - keys:
            del self._steps[key]
        for group_key, group in late_groups.items():
            lags = self._lags_of(now, group)
            late_by = max((lag.behind for lag in lags.values()), default=0.0)
            step = next((lag.step for lag in lags.values()), 0.0)
            if late_by < max(MIN_LAG_S, MIN_LAG_SHARE * step):
                self._late_since.pop(group_key, None)
                continue
            since = self._late_since.setdefault(group_key, now)
            self._lags |= {k: msgspec.structs.replace(g, since=since) for k, g in lags.items()}

    def _lags_of(self, now: float, group: list[Member]) -> dict[int, StepLag]:
        """Return the lag of each member of a group; {} until there are enough samples."""
        for member in group:
            self._steps[member.event_key].add_end(now, member.step, member.step_at, member.ops)
        means = [self._steps[m.event_key].mean_step for m in group]
        numbers = [m.step for m in group]
        if (
            len(group) < 2
            or min(means) <= 0.0
            or max(means) > MAX_STEP_RATIO * min(means)
            or max(numbers) - min(numbers) > MAX_NUMBERS_APART
            or min(self._steps[m.event_key].calls_per_step for m in group) < MIN_CALLS_PER_STEP
        ):
            return {}
        step = median(means)
        ends = {m.event_key: m.step_at - (m.step - numbers[0]) * step for m in group}
        earliest_end = min(ends.values())
        for key, end in ends.items():
            self._steps[key].lags.append((now, end - earliest_end))
        if min(self._steps[key].span for key in ends) < MIN_SPAN_S:
            return {}
        return {key: self._summary(key, step) for key in ends}

    def _summary(self, key: int, step: float) -> StepLag:
        steps = self._steps[key]
        lags = sorted(lag for _, lag in steps.lags)
        return StepLag(
            behind=median(lags), least=lags[len(lags) // 4], step=step, span=steps.span, since=0.0
        )


def _steps_with_others(member: Member) -> bool:
    return (
        member.alive
        and not member.launcher
        and member.phase is Phase.TRAINING
        and member.step > 0
        and member.framework == "torch"
        and member.declared is not None
        and member.declared.world_size > 1
    )


def _seems_late(group: list[Member]) -> bool:
    """Return True if one of the members seems to have ended its last step late."""
    step = group[0].pace.step
    if len(group) < 2 or not all(map(_waits_unseen, group)):
        return False
    ends = [m.step_at - (m.step - group[0].step) * step for m in group]
    return max(ends) - min(ends) >= GLANCE_SHARE * max(MIN_LAG_S, MIN_LAG_SHARE * step)


def _waits_unseen(member: Member) -> bool:
    """Return True if the member spends hardly any time in calls that return when they are over."""
    return member.pace.steps > 0 and member.pace.sync <= MAX_WAITING_SHARE * member.pace.step
