"""How fast a process steps, and where the time of its steps goes: looks of some seconds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from allaboard.facts import Pace

SPAN = 20.0
"""Seconds that are looked back on."""


class Paces:
    """Medians of steps, as they were every second of the last SPAN s."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Pace]] = deque()
        self._sorted: tuple[list[float], list[float], list[float]] = ([], [], [])
        self._told = Pace()

    def add(self, at: float, pace: Pace) -> None:
        """Takes in one look; the same one again is none."""
        if self._looks and self._looks[-1][1] == pace:
            return
        self._looks.append((at, pace))
        for known, value in zip(self._sorted, (pace.step, pace.input, pace.sync), strict=True):
            insort(known, value)
        while self._looks[0][0] < at - SPAN:
            _, old = self._looks.popleft()
            for known, value in zip(self._sorted, (old.step, old.input, old.sync), strict=True):
                del known[bisect_left(known, value)]
        step, input_, sync = map(_middle, self._sorted)
        self._told = Pace(pace.steps, step, input_, sync, at - self._looks[0][0])

    def clear(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._looks.clear()
        for known in self._sorted:
            known.clear()
        self._told = Pace()

    @property
    def pace(self) -> Pace:
        return self._told


def _middle(known: list[float]) -> float:
    """The median of what is sorted already."""
    half = len(known) // 2
    return known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2
