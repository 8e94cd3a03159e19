"""Where a process spends its time: from looks of some seconds, each of which costs nothing more."""

from __future__ import annotations

from bisect import bisect_left

from allaboard.analysis.performance.recent_window import RECENT
from allaboard.facts import Load

SPAN = 10.0
"""Seconds that are looked back on; those of ``recent`` show what has changed, where it is much."""

NONE = Load()

Mark = tuple[float, float, float, float, float]
"""When, CPU time so far (s), time inside operations so far (s), of it waiting for the chief (s), and time
stopped so far (s)."""


class TimeShares:
    """Looks of the last SPAN s, and the first one of its work."""

    __slots__ = (
        "_allowed", "_begin", "_chief", "_for_chief", "_halted", "_last", "_looks", "_stopped",
    )  # fmt: skip

    def __init__(self) -> None:
        self._looks: list[Mark] = []  # a deque takes ten times as much while there are few
        self._begin: Mark | None = None
        self._last: Mark | None = None
        self._allowed = 0.0
        self._chief = 0.0
        self._for_chief = False
        self._halted = 0.0
        self._stopped = False

    def add_times(
        self, at: float, cpu: float, inside: float, allowed: float, works: bool,
        for_chief: bool = False, stopped: bool = False,
    ) -> None:  # fmt: skip
        """Takes in one look. ``works``: it trains or serves, and does not start up any more;
        ``for_chief``: it waits for the chief to initialise; ``stopped`` by a signal."""
        passed = max(0.0, at - self._last[0]) if self._last is not None else 0.0
        self._chief += passed if self._for_chief else 0.0
        self._halted += passed if self._stopped else 0.0
        self._for_chief, self._stopped = for_chief, stopped
        self._last = at, cpu, inside, self._chief, self._halted
        if allowed != self._allowed:
            self._looks.clear()  # what was used before says nothing of what may be used now
        self._allowed = allowed
        if works and self._begin is None:
            self._begin = self._last
            self._looks.clear()  # a start has a pace of its own
        self._looks.append(self._last)
        while self._looks[0][0] < at - SPAN:
            self._looks.pop(0)

    def restart_window(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._looks.clear()

    @property
    def load(self) -> Load:
        """Of the last seconds."""
        return self._between(self._looks[0], self._looks[-1]) if self._looks else NONE

    @property
    def recent_load(self) -> Load:
        """Of the last RECENT s."""
        if not self._looks:
            return NONE
        last = self._looks[-1]
        first = bisect_left(self._looks, last[0] - RECENT, key=lambda look: look[0])
        return self._between(self._looks[first], last)

    @property
    def run_load(self) -> Load:
        """Since its work began."""
        return self._between(self._begin, self._last) if self._begin and self._last else NONE

    def _between(self, first: Mark, last: Mark) -> Load:
        span = last[0] - first[0]
        if span <= 0:
            return NONE
        cpu, inside = (last[1] - first[1]) / span, (last[2] - first[2]) / span
        inside = 0.0 if inside < 0.0 else 1.0 if inside > 1.0 else inside
        chief = (last[3] - first[3]) / span
        stopped = (last[4] - first[4]) / span
        return Load(
            span=span,
            cpu=cpu if cpu > 0.0 else 0.0,
            allowed=self._allowed,
            inside=inside,
            chief=chief if chief < inside else inside,
            stopped=stopped if stopped < 1.0 else 1.0,
        )
