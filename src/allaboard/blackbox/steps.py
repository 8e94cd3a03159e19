"""The steps in a black box: how many, the times between the last ones, and what a step consists of."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from allaboard.blackbox.box_bytes import BoxMap, reread
from allaboard.facts import Pace
from allaboard.probe import layout

PACE_INTERVAL_S = 1.0
"""Time between two medians of a member's steps."""
MIN_PACE_STEPS = 16
"""A median is over at least this many steps."""
WARMUP_STEPS = 2
"""Steps in which compilers run and caches fill; their times mean nothing."""
MAX_SHOWN_LOSS = 1e18
"""Losses beyond are not reported: `Measure` bounds what agents send to each other."""
_RING = layout.RING * layout.PACE.size


class StepReader:
    """Reads the steps of one box; what takes long only once a second."""

    def __init__(self, map_: BoxMap) -> None:
        self._map = map_
        self._steps = -1
        self._cached_intervals: tuple[tuple[float, ...], float] = (), 0.0
        self._cached_pace = Pace(), 0.0
        self.loss: float | None = None
        """The last finite loss, as of the last call of `last_step`; None if none was seen."""

    def last_step(self) -> tuple[int, float]:
        """Return how many steps are done, and when the last one ended (s)."""
        for _ in range(4):
            reread(self._map, layout.STEP_AT, layout.STEP.size)
            begin, step, step_at, _, _, loss, end = layout.STEP.unpack_from(
                self._map, layout.STEP_AT
            )
            if begin == end:
                break
        # The file is its owner's own and may hold any number; agents exchange no greater ones.
        self.loss = loss if begin and abs(loss) <= MAX_SHOWN_LOSS else None
        return step, step_at

    def intervals(self, step: int, step_at: float) -> tuple[float, ...]:
        """Return the times of the last steps (s), from the ring. Once the ring is full, it is read
        once a second."""
        cached, when = self._cached_intervals
        if step == self._steps or (
            self._steps > layout.RING and 0.0 <= step_at - when < PACE_INTERVAL_S
        ):
            return cached
        self._steps = step
        # One less than the ring holds: the oldest place is the one that the next step overwrites.
        ring_steps = min(step, layout.RING - 1)
        ring = self._ring()
        oldest = (step - ring_steps + 1) % layout.RING
        times = [done for done, _, _ in (ring[oldest:] + ring[:oldest])[:ring_steps]]
        self._cached_intervals = tuple(b - a for a, b in pairwise(times) if b >= a), step_at
        return self._cached_intervals[0]

    def pace(self, step: int, step_at: float) -> Pace | None:
        """Return medians over the last steps, computed once a second; None during warm-up."""
        cached, when = self._cached_pace
        if step_at - when < PACE_INTERVAL_S or step <= WARMUP_STEPS:
            return cached if cached.steps else None
        most = min(step - WARMUP_STEPS, layout.RING - 1)
        ring = self._ring()
        new = sum(
            ring[n % layout.RING][0] > step_at - PACE_INTERVAL_S
            for n in range(step - most + 1, step + 1)
        )
        steps = max(new, min(most, MIN_PACE_STEPS))
        recent_steps = range(step - steps + 1, step + 1)
        times = [ring[n % layout.RING][0] - ring[(n - 1) % layout.RING][0] for n in recent_steps]
        pace = Pace(
            steps=steps,
            step=median(times),
            input=median(ring[n % layout.RING][1] for n in recent_steps),
            sync=median(ring[n % layout.RING][2] for n in recent_steps),
        )
        self._cached_pace = pace, step_at
        return pace

    def _ring(self) -> list[tuple[float, float, float]]:
        """Return, by step number modulo the ring's length: end time, seconds of waiting for data,
        seconds in collectives."""
        reread(self._map, layout.RING_AT, _RING)
        raw = bytes(self._map[layout.RING_AT : layout.RING_AT + _RING])
        return list(layout.PACE.iter_unpack(raw))
