"""Scales of plots: round numbers on the axes, and few enough points to draw. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

MAX_DRAWN = 400
"""Points of one line; of more, the lowest and the highest of each bucket are drawn."""
Series = Sequence[tuple[float, float]]


def round_ticks(highest: float, lowest: float = 0.0) -> list[float]:
    """Return about four round numbers that cover the range, the lowest first."""
    span = highest - lowest
    if not math.isfinite(span) or span <= 0:
        highest, span = lowest + 1.0, 1.0
    raw = span / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= raw * 0.999)
    lowest_number = math.floor(lowest / step + 1e-9)
    highest_number = math.ceil(highest / step - 1e-9)
    return [round(n * step, 12) for n in range(lowest_number, highest_number + 1)]


def time_ticks(end_s: float, tick_count: int = 6) -> list[float]:
    """Return round times from 0 to the end, in seconds."""
    steps = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
    step = next(
        (s for s in steps if end_s / s <= tick_count), 86400 * math.ceil(end_s / 86400 / tick_count)
    )
    return [float(n * step) for n in range(int(end_s / step) + 1)]


def tick_time(seconds: float) -> str:
    """Return ``40 s``, ``3:05`` or ``2:05:00``."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def thin(points: Series) -> list[tuple[float, float]]:
    """Return at most `MAX_DRAWN` points that keep every peak."""
    if len(points) <= MAX_DRAWN:
        return list(points)
    size = math.ceil(len(points) / (MAX_DRAWN // 2))
    peaks: list[tuple[float, float]] = []
    for begin in range(0, len(points), size):
        bucket = points[begin : begin + size]
        ends = {min(bucket, key=lambda p: p[1]), max(bucket, key=lambda p: p[1])}
        peaks += sorted(ends)
    return peaks
