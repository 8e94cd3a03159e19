"""The plots of a report: step time, speed, waiting, loss and resources over the time of the run. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import median

import msgspec

from allaboard.faces.report.axis import Series, round_ticks, thin, tick_time, time_ticks
from allaboard.feed.rank_lanes import ResourcePoint, RunCourse
from allaboard.report.servers import format_bytes
from allaboard.report.what_happened import step_words

WIDTH, HEIGHT = 480, 190
LEFT, RIGHT, TOP, BOTTOM = 62, 8, 10, 22
"""Room around the plot for its axes, in units of the drawing."""


class Label(msgspec.Struct, frozen=True):
    """A number on an axis."""

    at: float
    """Its place on the axis."""
    text: str
    """The number."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a plot."""

    name: str
    """What it shows."""
    path: str
    """Its path in SVG."""
    index: int
    """Which colour it has."""


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """One plot, laid out."""

    title: str
    """What it shows."""
    summary: str
    """Its numbers in words, for those who cannot see it."""
    lines: tuple[Line, ...]
    """Its lines."""
    x_labels: tuple[Label, ...]
    """The times."""
    y_labels: tuple[Label, ...]
    """The values."""
    marks: tuple[Label, ...]
    """Findings, by their numbers."""


class _PlotData(msgspec.Struct, frozen=True):
    """One plot before it is laid out."""

    title: str
    lines: tuple[tuple[str, Series], ...]
    show: Callable[[float], str]
    is_from_zero: bool = True


def lay_out_plots(course: RunCourse, marks: Iterable[tuple[float, str]]) -> tuple[Plot, ...]:
    """Return the plots that have something to show. ``marks``: time and number of each finding."""
    end_s = course.points[-1].elapsed_s if course.points else 0.0
    marked = tuple(marks)
    plots = (_lay_out(plot_data, end_s, marked) for plot_data in _plot_data(course))
    return tuple(plot for plot in plots if plot is not None)


def _plot_data(course: RunCourse) -> list[_PlotData]:
    points, used = course.points, course.resources
    step = [(p.elapsed_s, p.step_s) for p in points if p.step_s is not None]
    longest = [(p.elapsed_s, p.step_longest_s) for p in points if p.step_longest_s is not None]
    loss = [(p.elapsed_s, p.loss) for p in points if p.loss is not None]
    gpu = [(p.elapsed_s, p.gpu) for p in used if p.gpu is not None]
    gpu_memory = (
        ("held", _known(used, lambda p: p.gpu_memory_nbytes)),
        ("reserved by the framework", _known(used, lambda p: p.gpu_reserved_nbytes)),
        ("in use by tensors", _known(used, lambda p: p.gpu_used_nbytes)),
    )
    network = (
        ("received", [(p.elapsed_s, p.received_per_s) for p in used]),
        ("sent", [(p.elapsed_s, p.sent_per_s) for p in used]),
    )
    trains = any(p.step for p in points)
    return [
        _PlotData("Step time", (("median rank", step), ("slowest rank", longest)), step_words),
        _PlotData(
            "Steps per second",
            (("", [(p.elapsed_s, p.steps_per_s) for p in points] if trains else []),),
            "{:.3g}".format,
        ),
        _PlotData(
            "Waiting for other ranks",
            (("", [(p.elapsed_s, p.waiting) for p in points] if trains else []),),
            "{:.0%}".format,
        ),
        _PlotData("Loss", (("", loss),), "{:.4g}".format, False),
        _PlotData(
            "CPU cores in use",
            (("", [(p.elapsed_s, p.cpu) for p in points]),),
            lambda cores: f"{cores:.3g}" if cores < 1000 else f"{cores:,.0f}",
        ),
        _PlotData(
            "Memory of all ranks",
            (("", [(p.elapsed_s, float(p.memory_nbytes)) for p in points]),),
            format_bytes,
        ),
        _PlotData("GPUs busy", (("", gpu),), "{:.0%}".format),
        _PlotData("Memory on GPUs", gpu_memory, format_bytes),
        _PlotData(
            "Space in use on the fullest disk",
            (("", _known(used, lambda p: p.disk_nbytes)),),
            format_bytes,
        ),
        _PlotData("Network", network, lambda rate: f"{format_bytes(rate)}/s"),
    ]


def _known(
    points: Iterable[ResourcePoint], value_of: Callable[[ResourcePoint], float | None]
) -> list[tuple[float, float]]:
    return [(p.elapsed_s, value) for p in points if (value := value_of(p)) is not None]


def _lay_out(
    plot_data: _PlotData, end_s: float, marks: tuple[tuple[float, str], ...]
) -> Plot | None:
    lines = [
        (name, [p for p in points if math.isfinite(p[1])])
        for name, points in plot_data.lines
        if len(points) > 1 and any(value for _, value in points)
    ]
    values = [value for _, points in lines for _, value in points]
    if not values or end_s <= 0:
        return None
    ticks = round_ticks(max(values), 0.0 if plot_data.is_from_zero else min(values))
    low, high = ticks[0], ticks[-1]

    def x(at_s: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, at_s / end_s)), 1)

    def y(value: float) -> float:
        share = (value - low) / (high - low)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(1.0, max(0.0, share)), 1)

    drawn = tuple(
        Line(
            name=name,
            path="M" + "L".join(f"{x(at_s):g} {y(value):g}" for at_s, value in thin(points)),
            index=index,
        )
        for index, (name, points) in enumerate(lines)
    )
    return Plot(
        title=plot_data.title,
        summary="; ".join(_summary(name, points, plot_data.show) for name, points in lines),
        lines=drawn,
        x_labels=tuple(Label(x(t), tick_time(t)) for t in time_ticks(end_s, 5)),
        y_labels=tuple(Label(y(t), plot_data.show(t)) for t in ticks),
        marks=tuple(Label(x(at_s), text) for at_s, text in marks),
    )


def _summary(name: str, points: Series, show: Callable[[float], str]) -> str:
    values = [value for _, value in points]
    numbers = f"median {show(median(values))}, highest {show(max(values))}, last {show(values[-1])}"
    return f"{name}: {numbers}" if name else numbers
