"""How many steps all trainers together had made, at moments of the last minutes."""

from __future__ import annotations

from collections import deque

MAX_MARKS = 4096
"""Moments that are remembered."""


class StepHistory:
    """Times (s) and totals of steps, oldest first."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque(maxlen=MAX_MARKS)

    def add_total(self, sampled_at: float, steps: int) -> None:
        """Add the total at ``sampled_at`` (s); if it has not changed, the last mark is moved on."""
        # A total that stands keeps two marks: when it was reached, and until when it was seen.
        if len(self._marks) > 1 and self._marks[-1][1] == self._marks[-2][1] == steps:
            self._marks.pop()
        self._marks.append((sampled_at, steps))

    def steps_at(self, moment: float) -> int | None:
        """Return the total at this moment, interpolated between two marks; None before the first mark."""
        later: tuple[float, int] | None = None
        for mark in reversed(self._marks):
            if mark[0] <= moment:
                if later is None or later[0] <= mark[0]:
                    return mark[1]
                share = (moment - mark[0]) / (later[0] - mark[0])
                return mark[1] + round(share * (later[1] - mark[1]))
            later = mark
        return None
