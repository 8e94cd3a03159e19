"""What is measured every few seconds of processes and hosts, and the line through the last minute of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from allaboard.facts import Reading, Trend, Use

SPAN = 60.0
"""Seconds that are looked back on, ..."""
RECENT = 4.2
"""... and those that show what has just begun, or is over: five looks, one each second."""
SAMPLES = 4
"""Fewer make no line: so many last ones are taken, where looks come less often."""


class ResourceTrends:
    """The last readings, by host, process and name."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], dict[str, deque[tuple[float, float]]]] = {}
        self._uses: dict[tuple[str, int], dict[str, Use]] = {}

    def add_readings(self, at: float, host: str, readings: Iterable[Reading]) -> None:
        """Readings of one host, all taken at ``at`` (s)."""
        for one in readings:
            key = host, one.pid
            seen = self._seen.setdefault(key, {}).setdefault(one.name, deque())
            before = self._uses.get(key, {}).get(one.name)
            if before is not None and before.limit != one.limit:
                seen.clear()  # cores that were taken away count no more: it is another line
            seen.append((at, one.value))
            while seen[0][0] < at - SPAN:
                seen.popleft()
            trend = _trend(seen)
            self._uses.setdefault(key, {})[one.name] = Use(
                host=host,
                pid=one.pid,
                name=one.name,
                value=one.value,
                limit=one.limit,
                rate=trend.rate,
                fit=trend.fit,
                span=trend.span,
                origin=one.origin,
                recent=_trend(
                    [
                        point
                        for n, point in enumerate(islice(reversed(seen), 8))
                        if n < SAMPLES or point[0] >= at - RECENT
                    ]
                ),
            )

    def forget_process(self, host: str, pid: int) -> None:
        """The process has ended."""
        self._uses.pop((host, pid), None)
        self._seen.pop((host, pid), None)

    def restart_window(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._seen.clear()
        self._uses.clear()

    @property
    def uses(self) -> tuple[Use, ...]:
        return tuple(use for uses in self._uses.values() for use in uses.values())


def _trend(points: Sequence[tuple[float, float]]) -> Trend:
    """The line through them, newest or oldest first; of few, only how long they were looked at."""
    rate, fit = line(points) if len(points) >= SAMPLES else (0.0, 0.0)
    return Trend(rate, fit, abs(points[-1][0] - points[0][0]))


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the least-squares line through (time, value), and its coefficient of determination."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    if xx <= 0.0:
        return 0.0, 0.0
    return xy / xx, xy * xy / (xx * yy) if yy > 0.0 else 0.0
