"""When to look at the stacks of ranks that train: only while one ends its steps late, and others may wait."""

from __future__ import annotations

from allaboard.analysis.performance.late_ranks import find_late_ranks
from allaboard.facts import JobView

LOOK_INTERVAL_S = 0.4
"""Least time between two looks of a series; the agent's own rhythm and the reader make it vary."""
LOOKS = 24
"""Looks of one series."""
FIRST_PAUSE_S = 60.0
"""Time between the first two series."""
MAX_PAUSE_S = 960.0
"""Longest time between two series: each pause is twice as long as the one before."""


class StragglerLooks:
    """Decides whose stacks are to be read. Pure but for its counters."""

    def __init__(self) -> None:
        self._pids: tuple[int, ...] = ()
        self._looks = 0
        self._looked_at = float("-inf")
        self._pause_s = FIRST_PAUSE_S

    def pids_to_look_at(self, view: JobView) -> tuple[int, ...]:
        """Return the processes to look at now: of each world with late ranks the latest and the first; none
        most of the time."""
        pids = tuple(
            m.event_key for late in find_late_ranks(view) for m in (late.slow[0], late.ahead[0])
        )
        if not pids:
            return ()
        if set(pids) != set(self._pids):
            self._pids, self._looks, self._pause_s = pids, 0, FIRST_PAUSE_S
        elapsed = view.now - self._looked_at
        if self._looks >= LOOKS:
            if elapsed < self._pause_s:
                return ()
            self._looks, self._pause_s = 0, min(MAX_PAUSE_S, 2 * self._pause_s)
        if elapsed < LOOK_INTERVAL_S:
            return ()
        self._looks += 1
        self._looked_at = view.now
        return pids
