"""The figures of all ranks as drawings: bands over the run, and a dot for each rank. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from allaboard.faces.report.axis import Series, round_ticks, thin, tick_time, time_ticks
from allaboard.faces.report.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Label, Line
from allaboard.feed.rank_figures import Band, RankFigure
from allaboard.report.servers import format_bytes
from allaboard.report.what_happened import step_words

MAX_MARKED = 64
"""Outlying ranks whose dots are marked."""
_SHOW: dict[str, Callable[[float], str]] = {
    "s": step_words,
    "share": "{:.0%}".format,
    "bytes": format_bytes,
}


class RankDot(msgspec.Struct, frozen=True):
    """The dot of a rank that lies apart."""

    x: float
    """Its place."""
    y: float
    """Its height."""
    title: str
    """The rank and its value in words."""


class RankPlot(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of all ranks, laid out twice: over time, and by rank."""

    title: str
    """What it shows."""
    summary: str
    """Its numbers in words."""
    outlying: str
    """The ranks that lie apart, in words; "" for none."""
    outer: str
    """Path of the band from the lowest to the highest rank."""
    inner: str
    """Path of the band that leaves out a tenth of the ranks above and below."""
    lines: tuple[Line, ...]
    """The median, then ranks that lie apart."""
    x_labels: tuple[Label, ...]
    """The times."""
    y_labels: tuple[Label, ...]
    """The values, of both drawings."""
    dots: str
    """Path with a dot for each rank."""
    marked: tuple[RankDot, ...]
    """Ranks that lie apart."""
    rank_labels: tuple[Label, ...]
    """Ranks below the dots."""


def lay_out_rank_plots(figures: Sequence[RankFigure], end_s: float) -> tuple[RankPlot, ...]:
    """Return a drawing of each figure in which ranks differ visibly."""
    if end_s <= 0:
        return ()
    return tuple(_lay_out(f, end_s) for f in figures if len(f.bands) > 1 and _differs(f))


def _differs(figure: RankFigure) -> bool:
    """Return True if a rank lies apart, or ranks differ by a tenth of the highest value at some time."""
    top = max(band.highest for band in figure.bands)
    is_wide = any(band.highest - band.lowest > 0.1 * top for band in figure.bands)
    return is_wide or bool(figure.outlying)


def _lay_out(figure: RankFigure, end_s: float) -> RankPlot:
    show = _SHOW[figure.measure.unit]
    ticks = round_ticks(max(band.highest for band in figure.bands))
    high = ticks[-1]
    count = len(figure.names)

    def x(at_s: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, at_s / end_s)), 1)

    def y(value: float) -> float:
        share = min(1.0, max(0.0, value / high))
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    def rank_x(index: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / count, 1)

    def band(low: Callable[[Band], float], highest: Callable[[Band], float]) -> str:
        upper = [f"{x(b.elapsed_s):g} {y(highest(b)):g}" for b in figure.bands]
        lower = [f"{x(b.elapsed_s):g} {y(low(b)):g}" for b in reversed(figure.bands)]
        return "M" + "L".join((*upper, *lower)) + "Z"

    def path(points: Series) -> str:
        return "M" + "L".join(f"{x(at_s):g} {y(value):g}" for at_s, value in thin(points))

    median_line = [(b.elapsed_s, b.middle) for b in figure.bands]
    lines = [("median", median_line), *((line.name, line.points) for line in figure.lines)]
    typical = [(n, value) for n, value in enumerate(figure.typical) if value is not None]
    # Dots of thousands of ranks at one place are one dot.
    places = dict.fromkeys((round(2 * rank_x(n)) / 2, round(2 * y(v)) / 2) for n, v in typical)
    step = max(1, count // 8)
    return RankPlot(
        title=figure.measure.name,
        summary=_summary([value for _, value in typical], show),
        outlying=_outlying(figure, show),
        outer=band(lambda b: b.lowest, lambda b: b.highest),
        inner=band(lambda b: b.low, lambda b: b.high),
        lines=tuple(Line(name=n, path=path(p), index=i) for i, (n, p) in enumerate(lines)),
        x_labels=tuple(Label(x(t), tick_time(t)) for t in time_ticks(end_s, 5)),
        y_labels=tuple(Label(y(t), show(t)) for t in ticks),
        dots="".join(f"M{at_x:g} {at_y:g}h0" for at_x, at_y in places),
        marked=tuple(
            RankDot(rank_x(n), y(value), f"{figure.names[n]}: {show(value)}")
            for n in figure.outlying[:MAX_MARKED]
            if (value := figure.typical[n]) is not None
        ),
        rank_labels=tuple(
            Label(rank_x(n), figure.names[n].rpartition(" ")[2]) for n in range(0, count, step)
        ),
    )


def _summary(typical: list[float], show: Callable[[float], str]) -> str:
    values = sorted(typical)
    low, middle, high = (values[round((len(values) - 1) * q)] for q in (0.1, 0.5, 0.9))
    return (
        f"lowest rank {show(values[0])}, median {show(middle)}, highest {show(values[-1])}; "
        f"eight of ten ranks have {show(low)} to {show(high)}"
    )


def _outlying(figure: RankFigure, show: Callable[[float], str]) -> str:
    if not figure.outlying:
        return ""
    shown = []
    for index in figure.outlying[:8]:
        value = figure.typical[index]
        shown.append(figure.names[index] + (f" ({show(value)})" if value is not None else ""))
    more = len(figure.outlying) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
