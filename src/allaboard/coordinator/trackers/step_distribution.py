"""How the durations of steps are spread over a whole run: a histogram of a few hundred buckets."""

from __future__ import annotations

import math
from collections import defaultdict

from allaboard.facts.step_spread import StepSpread

BUCKET_RATIO = 1.04
"""Ratio of a bucket's bounds: a quantile is known to two percent."""
SHORTEST_S = 1e-6
"""Durations below this one (s) count as this one."""
LOW_QUANTILE, HIGH_QUANTILE = 0.05, 0.95
"""Quantiles that show the spread."""
_LOG_RATIO = math.log(BUCKET_RATIO)


class StepDistribution:
    """Durations of the steps of one process at a time: members step together, so one stands for all."""

    def __init__(self) -> None:
        self._weights: dict[int, float] = defaultdict(float)
        """Number of a bucket to the steps in it."""
        self._pid: int | None = None
        """The process that is followed; None before one has made steps."""
        self._step = 0
        """Steps that it had made at the last sample."""

    def add_steps(self, pid: int, step: int, intervals: tuple[float, ...]) -> None:
        """Take in the last durations (s) of a process that has made ``step`` steps.

        Between two samples it may have made more steps than there are durations: these stand for all.
        """
        if self._pid is None and intervals:
            self._pid, self._step = pid, step - len(intervals)
        if pid != self._pid or step <= self._step or not intervals:
            return
        new_steps = step - self._step
        newest = intervals[-new_steps:]
        for duration in newest:
            self._weights[_bucket(duration)] += new_steps / len(newest)
        self._step = step

    def stop_following(self, pid: int) -> None:
        """Follow another process from now on, since this one has ended."""
        if pid == self._pid:
            self._pid = None

    @property
    def spread(self) -> StepSpread | None:
        """Median and quantiles of all durations so far; None before three steps."""
        total = sum(self._weights.values())
        if total < 3:
            return None
        return StepSpread(
            steps=round(total),
            median_s=self._quantile(total / 2),
            low_s=self._quantile(total * LOW_QUANTILE),
            high_s=self._quantile(total * HIGH_QUANTILE),
        )

    def _quantile(self, weight: float) -> float:
        """Return the middle of the bucket (s) in which the sum of the weights reaches ``weight``."""
        reached = 0.0
        number = 0
        for number in sorted(self._weights):
            reached += self._weights[number]
            if reached >= weight:
                break
        return float(f"{math.exp((number + 0.5) * _LOG_RATIO):.3g}")


def _bucket(duration_s: float) -> int:
    return math.floor(math.log(max(duration_s, SHORTEST_S)) / _LOG_RATIO)
