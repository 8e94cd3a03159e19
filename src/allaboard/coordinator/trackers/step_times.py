"""How fast a process steps, and where the time of its steps goes, over a window of some seconds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from itertools import takewhile
from statistics import median

from allaboard.analysis.performance.recent_window import RECENT_WINDOW_S
from allaboard.facts import Pace

WINDOW_S = 20.0
"""Age up to which samples count. Those of the recent window show what has just changed, if it is much."""
TYPICAL_EXTREME = 2
"""Index of the sample, counted from the least or the greatest, that stands for how little or how much a step
took for a while: one or two samples may show a hiccup."""


class StepTimes:
    """Medians of step times, one sample a second, over the last WINDOW_S seconds."""

    __slots__ = ("_pace", "_recent_pace", "_samples", "_sorted_parts")

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, Pace]] = deque()
        """Time, steps made so far, and the pace."""
        self._sorted_parts: tuple[list[float], ...] = ([], [], [], [])
        """Sorted values of each part of a pace: kept sorted, since medians are asked for at every sample."""
        self._pace = self._recent_pace = Pace()

    def add_step_times(self, sampled_at: float, pace: Pace, steps: int) -> None:
        """Take in one sample at ``sampled_at`` (s), after ``steps`` steps. A pace that has not changed is no
        new one."""
        if self._samples and self._samples[-1][2] == pace:
            return
        self._samples.append((sampled_at, steps, pace))
        for values, value in zip(self._sorted_parts, _parts(pace), strict=True):
            insort(values, value)
        while self._samples[0][0] < sampled_at - WINDOW_S:
            *_, expired = self._samples.popleft()
            for values, value in zip(self._sorted_parts, _parts(expired), strict=True):
                # It is there to the last bit: it was made of the same Pace when it was inserted.
                del values[bisect_left(values, value)]
        step, input_, sync = map(_sorted_median, self._sorted_parts[:3])
        own_times = self._sorted_parts[3]
        extreme = min(TYPICAL_EXTREME, len(own_times) - 1)
        begin, steps_at_begin, oldest = self._samples[0]
        self._pace = Pace(
            steps - steps_at_begin + oldest.steps,
            step,
            input_,
            sync,
            sampled_at - begin,
            own_times[extreme],
            own_times[-1 - extreme],
        )
        self._recent_pace = self._pace_of_recent_window()

    def restart_window(self) -> None:
        """Forget all samples, since the agent was not scheduled for a while."""
        self._samples.clear()
        for values in self._sorted_parts:
            values.clear()
        self._pace = self._recent_pace = Pace()

    @property
    def pace(self) -> Pace:
        """The pace over the whole window."""
        return self._pace

    @property
    def recent_pace(self) -> Pace:
        """The pace over the recent window."""
        return self._recent_pace

    def _pace_of_recent_window(self) -> Pace:
        end, steps, _ = self._samples[-1]
        recent = list(
            takewhile(lambda sample: sample[0] >= end - RECENT_WINDOW_S, reversed(self._samples))
        )
        begin, steps_at_begin, oldest = recent[-1]
        return Pace(
            steps - steps_at_begin + oldest.steps,
            median(p.step for *_, p in recent),
            median(p.input for *_, p in recent),
            median(p.sync for *_, p in recent),
            end - begin,
            self._pace.low,
            self._pace.high,
        )


def _parts(pace: Pace) -> tuple[float, float, float, float]:
    return pace.step, pace.input, pace.sync, pace.own_time


def _sorted_median(values: list[float]) -> float:
    """Return the median of values that are sorted already."""
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
