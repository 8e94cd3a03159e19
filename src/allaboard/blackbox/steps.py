"""The steps of a black box: how many, the times between the last of them, and what a step is made of."""

from __future__ import annotations

import mmap
from itertools import pairwise
from statistics import median

from allaboard.facts import Pace
from allaboard.probe import layout

PACED = 1.0
"""Seconds between two medians of a member's steps: of those that were done meanwhile, ..."""
FEWEST = 16
"""... and of this many at least."""
WARM = 2
"""Steps in which compilers run and caches fill; their times mean nothing."""
_RING = layout.RING * layout.PACE.size


class StepReader:
    """Reads them of one box; what takes long once a second."""

    def __init__(self, map_: mmap.mmap) -> None:
        self._map = map_
        self._steps = -1
        self._timed: tuple[tuple[float, ...], float] = (), 0.0
        self._paced = Pace(), 0.0

    def last(self) -> tuple[int, float]:
        """How many are done, and when the last was (s)."""
        for _ in range(4):
            begin, step, at, _, _, end = layout.STEP.unpack_from(self._map, layout.STEP_AT)
            if begin == end:
                break
        return step, at

    def intervals(self, step: int, at: float) -> tuple[float, ...]:
        """The times between the last steps (s), from the ring; once it was full, it is read once a second."""
        told, when = self._timed
        if step == self._steps or (self._steps > layout.RING and 0.0 <= at - when < PACED):
            return told
        self._steps = step
        known = min(step, layout.RING - 1)
        ring = self._ring()
        first = (step - known + 1) % layout.RING
        times = [done for done, _, _ in (ring[first:] + ring[:first])[:known]]
        self._timed = tuple(b - a for a, b in pairwise(times) if b >= a), at
        return self._timed[0]

    def pace(self, step: int, at: float) -> Pace | None:
        """Medians of the last steps, worked out once a second."""
        known, when = self._paced
        if at - when < PACED or step <= WARM:
            return known if known.steps else None
        most = min(step - WARM, layout.RING - 1)
        ring = self._ring()
        new = sum(ring[n % layout.RING][0] > at - PACED for n in range(step - most + 1, step + 1))
        steps = max(new, min(most, FEWEST))
        last = range(step - steps + 1, step + 1)
        times = [ring[n % layout.RING][0] - ring[(n - 1) % layout.RING][0] for n in last]
        found = Pace(
            steps=steps,
            step=median(times),
            input=median(ring[n % layout.RING][1] for n in last),
            sync=median(ring[n % layout.RING][2] for n in last),
        )
        self._paced = found, at
        return found

    def _ring(self) -> list[tuple[float, float, float]]:
        """Of the last steps, by step number: time, seconds of waiting for data, and in collectives."""
        raw = self._map[layout.RING_AT : layout.RING_AT + _RING]
        return list(layout.PACE.iter_unpack(raw))
