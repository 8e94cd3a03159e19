"""Where a process spends its time, from samples over some seconds that are taken anyway."""

from __future__ import annotations

from bisect import bisect_left

from allaboard.analysis.performance.recent_window import RECENT_WINDOW_S
from allaboard.facts import Load

WINDOW_S = 10.0
"""Age up to which samples count. Those of the recent window show what has just changed, if it is much."""

NO_LOAD = Load()

Totals = tuple[float, float, float, float, float]
"""Time of the sample, and totals until then (s): CPU time, time inside operations, of it time waiting for the
chief, and time stopped."""


class TimeShares:
    """Samples of the last WINDOW_S seconds, and the first one since the process works."""

    __slots__ = (
        "_allowed_cores", "_chief_time", "_is_stopped", "_last", "_samples", "_stopped_time",
        "_waits_for_chief", "_work_began",
    )  # fmt: skip

    def __init__(self) -> None:
        self._samples: list[Totals] = []  # a deque takes ten times as much while there are few
        self._work_began: Totals | None = None
        self._last: Totals | None = None
        self._allowed_cores = 0.0
        self._chief_time = 0.0
        self._waits_for_chief = False
        self._stopped_time = 0.0
        self._is_stopped = False

    def add_times(
        self, sampled_at: float, cpu: float, inside_time: float, allowed: float, works: bool,
        for_chief: bool = False, stopped: bool = False,
    ) -> None:  # fmt: skip
        """Take in one sample: totals of CPU time and of time inside operations (s), and the ``allowed``
        cores.

        ``works``: it trains or serves, and does not start up any more; ``for_chief``: it waits for the chief
        to initialise the variables; ``stopped``: a signal has stopped it.
        """
        passed = max(0.0, sampled_at - self._last[0]) if self._last is not None else 0.0
        self._chief_time += passed if self._waits_for_chief else 0.0
        self._stopped_time += passed if self._is_stopped else 0.0
        self._waits_for_chief, self._is_stopped = for_chief, stopped
        self._last = sampled_at, cpu, inside_time, self._chief_time, self._stopped_time
        if allowed != self._allowed_cores:
            self._samples.clear()  # with other cores, earlier use says nothing of use now
        self._allowed_cores = allowed
        if works and self._work_began is None:
            self._work_began = self._last
            self._samples.clear()  # a start has a pace of its own
        self._samples.append(self._last)
        while self._samples[0][0] < sampled_at - WINDOW_S:
            self._samples.pop(0)

    def restart_window(self) -> None:
        """Forget all samples, since the agent was not scheduled for a while."""
        self._samples.clear()

    @property
    def load(self) -> Load:
        """The load over the whole window."""
        return self._load_between(self._samples[0], self._samples[-1]) if self._samples else NO_LOAD

    @property
    def recent_load(self) -> Load:
        """The load over the recent window."""
        if not self._samples:
            return NO_LOAD
        newest = self._samples[-1]
        index = bisect_left(
            self._samples, newest[0] - RECENT_WINDOW_S, key=lambda sample: sample[0]
        )
        return self._load_between(self._samples[index], newest)

    @property
    def run_load(self) -> Load:
        """The load since its work began."""
        if self._work_began is None or self._last is None:
            return NO_LOAD
        return self._load_between(self._work_began, self._last)

    def _load_between(self, earlier: Totals, later: Totals) -> Load:
        span = later[0] - earlier[0]
        if span <= 0:
            return NO_LOAD
        cpu, inside_share = (later[1] - earlier[1]) / span, (later[2] - earlier[2]) / span
        inside_share = 0.0 if inside_share < 0.0 else 1.0 if inside_share > 1.0 else inside_share
        chief = (later[3] - earlier[3]) / span
        stopped = (later[4] - earlier[4]) / span
        return Load(
            span=span,
            cpu=cpu if cpu > 0.0 else 0.0,
            allowed=self._allowed_cores,
            operation_share=inside_share,
            chief=chief if chief < inside_share else inside_share,
            stopped=stopped if stopped < 1.0 else 1.0,
        )
