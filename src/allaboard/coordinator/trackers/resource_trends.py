"""Readings of what processes and hosts use, taken every few seconds, and the line through the last minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter, mul

from allaboard.facts import Reading, Trend, Use

WINDOW_S = 60.0
"""Age up to which readings count for a trend."""
RECENT_WINDOW_S = 4.2
"""Age up to which readings count for the recent trend: five readings, one each second."""
MIN_READINGS = 4
"""Fewer readings make no line. If they come rarely, the recent trend takes so many of the last ones."""

ReadingKey = tuple[str, int]
"""Host and pid; pid 0 is the host itself."""


class ResourceTrends:
    """The last readings, by host, process and name."""

    def __init__(self) -> None:
        self._points: dict[ReadingKey, dict[str, deque[tuple[float, float]]]] = {}
        self._uses: dict[ReadingKey, dict[str, Use]] = {}

    def add_readings(self, measured_at: float, host: str, readings: Iterable[Reading]) -> None:
        """Take in the readings of one host, all taken at ``measured_at`` (s)."""
        for reading in readings:
            key = host, reading.pid
            points = self._points.setdefault(key, {}).setdefault(reading.name, deque())
            previous_use = self._uses.get(key, {}).get(reading.name)
            if previous_use is not None and previous_use.limit != reading.limit:
                points.clear()  # after a change of the limit (cores taken away) another line begins
            points.append((measured_at, reading.value))
            while points[0][0] < measured_at - WINDOW_S:
                points.popleft()
            trend = _trend(points)
            self._uses.setdefault(key, {})[reading.name] = Use(
                host=host,
                pid=reading.pid,
                name=reading.name,
                value=reading.value,
                limit=reading.limit,
                rate=trend.rate,
                fit=trend.fit,
                span=trend.span,
                origin=reading.origin,
                recent=_trend(_recent_points(points, measured_at)),
            )

    def forget_process(self, host: str, pid: int) -> None:
        """Forget a process that has exited."""
        self._uses.pop((host, pid), None)
        self._points.pop((host, pid), None)

    def restart_window(self) -> None:
        """Forget all readings, since the agent was not scheduled for a while."""
        self._points.clear()
        self._uses.clear()

    @property
    def uses(self) -> tuple[Use, ...]:
        """The newest reading of everything that is measured, with its trends."""
        return tuple(use for uses in self._uses.values() for use in uses.values())


def _recent_points(
    points: deque[tuple[float, float]], measured_at: float
) -> list[tuple[float, float]]:
    """Return the readings of the recent window, newest first, and at least the last MIN_READINGS."""
    return [
        point
        for n, point in enumerate(islice(reversed(points), 8))
        if n < MIN_READINGS or point[0] >= measured_at - RECENT_WINDOW_S
    ]


def _trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Return the line through the points, newest or oldest first; of few points only the time that they
    span."""
    rate, fit = fit_line(points) if len(points) >= MIN_READINGS else (0.0, 0.0)
    return Trend(rate, fit, abs(points[-1][0] - points[0][0]))


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope of the least-squares line through (time, value), and its coefficient of
    determination; zeros if all readings were taken at one time."""
    # By hand, since it runs twice for every reading of every process each second: linear_regression and
    # correlation of the statistics module take 43 us for 60 points (Python 3.11), this 23 us.
    values = list(map(_VALUE, points))
    if values.count(values[0]) == len(values):  # most of what is read stays as it is
        return 0.0, 0.0
    times = list(map(_TIME, points))
    n = len(points)
    mean_x, mean_y = sum(times) / n, sum(values) / n
    from_x, from_y = [x - mean_x for x in times], [y - mean_y for y in values]
    xx = sum(map(mul, from_x, from_x))
    if xx <= 0.0:
        return 0.0, 0.0
    xy, yy = sum(map(mul, from_x, from_y)), sum(map(mul, from_y, from_y))
    return xy / xx, xy * xy / (xx * yy) if yy > 0.0 else 0.0


_TIME, _VALUE = itemgetter(0), itemgetter(1)
