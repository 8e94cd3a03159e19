"""The duration of steps over the run in one line, outliers marked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from allaboard.faces.watch.figures import format_step_time
from allaboard.facts import Point

BARS = "▁▂▃▄▅▆▇█"
STALL_MARK = "×"
"""In place of a bar while no step was done."""
OUTLIER_FACTOR = 1.5
"""How many times the median a step takes that is an outlier."""
MIN_COLUMNS = 10
"""Bars of the line in a narrow terminal."""

Piece = tuple[str, str]


def sparkline(points: Iterable[Point], width: int) -> list[Piece]:
    """Return the line as pieces of text and styles; [] if no step was timed."""
    begun = list(points)
    while begun and begun[0].step_s is None:
        begun.pop(0)
    times = [p.step_s for p in begun if p.step_s is not None]
    if len(times) < 2:
        return []
    median_s = median(times)
    outliers = sum(t > OUTLIER_FACTOR * median_s for t in times)
    title = "step "
    figures = f" median {format_step_time(median_s)}, longest {format_step_time(max(times))}"
    if outliers:
        figures += f", {outliers} slow"
    columns = _columns(begun, max(MIN_COLUMNS, width - len(title) - len(figures)))
    pieces: list[Piece] = [(title, "dim")]
    low, high = min(times), max(max(times), 1.25 * median_s)
    for value in columns:
        if value is None:
            pieces.append((STALL_MARK, "bold red"))
        else:
            level = int((value - low) / (high - low) * (len(BARS) - 1)) if high > low else 0
            style = "bold red" if value > OUTLIER_FACTOR * median_s else "green"
            pieces.append((BARS[level], style))
    return [*pieces, (figures, "dim")]


def _columns(points: Sequence[Point], width: int) -> list[float | None]:
    """Return a value per column: the longest step of its points, None where nothing was done in any of
    them."""
    count = min(width, len(points))
    columns: list[float | None] = []
    for n in range(count):
        begin, end = n * len(points) // count, (n + 1) * len(points) // count
        part = points[begin:end]
        stalled = all(p.steps_per_s == 0 for p in part)
        times = [p.step_s for p in part if p.step_s is not None]
        columns.append(None if stalled or not times else max(times))
    return columns
