"""Where a process spends its time: from looks of some seconds, each of which costs nothing more."""

from __future__ import annotations

from collections import deque

from allaboard.facts import Load

SPAN = 10.0
"""Seconds that are looked back on."""


class Shares:
    """Looks of the last SPAN s: when, CPU time so far (s), and whether inside an operation."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float, bool]] = deque()
        self.allowed = 0

    def add(self, at: float, cpu: float, inside: bool, allowed: int) -> None:
        self._looks.append((at, cpu, inside))
        self.allowed = allowed
        while self._looks[0][0] < at - SPAN:
            self._looks.popleft()

    def clear(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._looks.clear()

    @property
    def load(self) -> Load:
        if len(self._looks) < 2:
            return Load()
        (start, before, _), (end, after, _) = self._looks[0], self._looks[-1]
        span = end - start
        return Load(
            span=span,
            cpu=max(0.0, after - before) / span if span > 0 else 0.0,
            allowed=self.allowed,
            inside=sum(i for _, _, i in self._looks) / len(self._looks),
        )
