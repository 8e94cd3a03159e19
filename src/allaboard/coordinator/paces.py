"""How fast a process steps, and where the time of its steps goes: looks of some seconds."""

from __future__ import annotations

from collections import deque
from statistics import median

from allaboard.facts import Pace

SPAN = 20.0
"""Seconds that are looked back on."""


class Paces:
    """Medians of steps, as they were every second of the last SPAN s."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Pace]] = deque()
        self._told = Pace()

    def add(self, at: float, pace: Pace) -> None:
        """Takes in one look; the same one again is none."""
        if self._looks and self._looks[-1][1] == pace:
            return
        self._looks.append((at, pace))
        while self._looks[0][0] < at - SPAN:
            self._looks.popleft()
        looks = [p for _, p in self._looks]
        self._told = Pace(
            steps=pace.steps,
            step=median(p.step for p in looks),
            input=median(p.input for p in looks),
            sync=median(p.sync for p in looks),
            span=at - self._looks[0][0],
        )

    def clear(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._looks.clear()
        self._told = Pace()

    @property
    def pace(self) -> Pace:
        return self._told
