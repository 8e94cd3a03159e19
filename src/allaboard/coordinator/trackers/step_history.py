"""How many steps all who train had done, at moments of the last minutes."""

from __future__ import annotations

from collections import deque

KEPT = 4096
"""Moments that are remembered."""


class StepHistory:
    """Times (s) and totals, the oldest first."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque(maxlen=KEPT)

    def add_total(self, at: float, steps: int) -> None:
        """A look; one that shows nothing new moves the last one on."""
        if len(self._marks) > 1 and self._marks[-1][1] == self._marks[-2][1] == steps:
            self._marks.pop()
        self._marks.append((at, steps))

    def steps_at(self, moment: float) -> int | None:
        """Steps at this moment, between two looks in proportion; None before the first look."""
        before: tuple[float, int] | None = None
        for mark in reversed(self._marks):
            if mark[0] <= moment:
                if before is None or before[0] <= mark[0]:
                    return mark[1]
                share = (moment - mark[0]) / (before[0] - mark[0])
                return mark[1] + round(share * (before[1] - mark[1]))
            before = mark
        return None
