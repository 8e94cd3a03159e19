"""Durations of steps as a histogram with fixed buckets. Pure."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the buckets; a last one has no bound."""
GAP_S = 2.0
"""Seconds by which a pause must exceed twice the usual time before it counts as one long step: snapshots come
about once a second, so a shorter one may be their distance."""


class StepHistogram:
    """Counts durations by bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0
        """Sum of all durations."""

    def add(self, durations: tuple[tuple[float, int], ...]) -> None:
        """Take in durations (s), each with how many steps had it."""
        for duration_s, steps in durations:
            self._counts[bisect_left(BOUNDS_S, duration_s)] += steps
            self.sum_s += duration_s * steps

    @property
    def buckets(self) -> tuple[tuple[str, int], ...]:
        """Each bucket's upper bound, as Prometheus writes it, with the steps up to it."""
        bounds = [*(str(bound) for bound in BOUNDS_S), "+Inf"]
        return tuple(zip(bounds, accumulate(self._counts), strict=True))

    @property
    def count(self) -> int:
        """All steps."""
        return sum(self._counts)


def step_durations(
    steps: int, usual_s: float | None, pause_s: float | None
) -> tuple[tuple[float, int], ...]:
    """Return how long the new steps of a rank took, each duration with how many steps had it.

    ``usual_s`` is the median of its last steps; ``pause_s`` is the time since the snapshot in which it had
    last made a step, None if that was never seen. The median hides a single long step, such as one in which
    all waited for a stopped rank: a pause that the usual duration does not explain is the duration of one.
    """
    if steps <= 0:
        return ()
    if usual_s is None:
        return ((pause_s / steps, steps),) if pause_s is not None else ()
    if pause_s is not None and pause_s > 2 * usual_s * steps + GAP_S:
        long_step_s = pause_s - usual_s * (steps - 1)
        return ((long_step_s, 1), (usual_s, steps - 1)) if steps > 1 else ((long_step_s, 1),)
    return ((usual_s, steps),)
