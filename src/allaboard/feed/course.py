"""The course of a job as a bounded number of points: the older, the further apart."""

from __future__ import annotations

from allaboard.facts import Point

MAX_POINTS = 600
"""Points that are kept. At one a second these are ten minutes; then every other point goes."""


class CourseRecorder:
    """Keeps at most `MAX_POINTS` points over the whole run, evenly spaced."""

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._points: list[Point] = []
        self._interval_s = 0.0

    def add(self, point: Point) -> None:
        """Take in a point, unless it is too soon after the last one."""
        points = self._points
        if points and point.elapsed_s - points[-1].elapsed_s < self._interval_s:
            return
        points.append(point)
        if len(points) >= self._max_points:
            del points[1::2]
            # A quarter less than their distance: points come a little early and late.
            self._interval_s = 0.75 * points[-1].elapsed_s / len(points)

    @property
    def points(self) -> tuple[Point, ...]:
        """All points, oldest first."""
        return tuple(self._points)
