"""How fast a process steps, and where the time of its steps goes: looks of some seconds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from itertools import takewhile
from statistics import median

from allaboard.analysis.performance.recent_window import RECENT
from allaboard.facts import Pace

SPAN = 20.0
"""Seconds that are looked back on; those of ``recent`` show what has changed, where it is much."""
THIRD = 2
"""The place of the look that tells how little or how much its steps took for a while: one look or two may
show a hiccup."""


class StepTimes:
    """Medians of steps, as they were every second of the last SPAN s."""

    __slots__ = ("_looks", "_recent", "_sorted", "_told")

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, Pace]] = deque()
        self._sorted: tuple[list[float], ...] = ([], [], [], [])
        self._told = self._recent = Pace()

    def add_step_times(self, at: float, pace: Pace, done: int) -> None:
        """Takes in one look (s), after ``done`` steps; the same one again is none."""
        if self._looks and self._looks[-1][2] == pace:
            return
        self._looks.append((at, done, pace))
        for known, value in zip(self._sorted, _parts(pace), strict=True):
            insort(known, value)
        while self._looks[0][0] < at - SPAN:
            *_, old = self._looks.popleft()
            for known, value in zip(self._sorted, _parts(old), strict=True):
                del known[bisect_left(known, value)]
        step, input_, sync = map(_middle, self._sorted[:3])
        own = self._sorted[3]
        third = min(THIRD, len(own) - 1)
        begin, before, first = self._looks[0]
        self._told = Pace(
            done - before + first.steps, step, input_, sync, at - begin, own[third], own[-1 - third]
        )
        self._recent = self._last()

    def restart_window(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._looks.clear()
        for known in self._sorted:
            known.clear()
        self._told = self._recent = Pace()

    @property
    def pace(self) -> Pace:
        return self._told

    @property
    def recent_pace(self) -> Pace:
        """As ``pace``, of the last RECENT s."""
        return self._recent

    def _last(self) -> Pace:
        until, done, _ = self._looks[-1]
        looks = list(takewhile(lambda k: k[0] >= until - RECENT, reversed(self._looks)))
        begin, before, first = looks[-1]
        return Pace(
            done - before + first.steps,
            median(p.step for *_, p in looks),
            median(p.input for *_, p in looks),
            median(p.sync for *_, p in looks),
            until - begin,
            self._told.low,
            self._told.high,
        )


def _parts(pace: Pace) -> tuple[float, float, float, float]:
    return pace.step, pace.input, pace.sync, pace.own


def _middle(known: list[float]) -> float:
    """The median of what is sorted already."""
    half = len(known) // 2
    return known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2
