"""The timeline of a report: what each rank did when, with the findings on it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from allaboard.faces.report.axis import tick_time, time_ticks
from allaboard.faces.report.plots import Label
from allaboard.facts import Activity
from allaboard.facts.rank_sets import describe_ranks, format_ranks
from allaboard.feed.lane_choice import Crowd
from allaboard.feed.rank_lanes import Lane, RunCourse

WIDTH, LEFT, RIGHT = 1000.0, 140.0, 12.0
LANE_HEIGHT, TOP = 18, 26
CROWD_HEIGHT = 96
MIN_LETTER_WIDTH = 12.0
"""Width of a span from which on it shows its letter."""
MAX_LABEL_LENGTH = 21
MARK_DISTANCE = 16.0
"""Marks that are closer than this are one above the other."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """One span of a lane."""

    x: float
    """Its left edge."""
    width: float
    """Its width."""
    activity: Activity
    """What the ranks did."""
    has_letter: bool
    """True if it is wide enough for its letter."""
    title: str
    """What it is in words."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One lane, laid out."""

    y: int
    """Its upper edge."""
    label: str
    """Its ranks, short."""
    ranks: str
    """Its ranks, whole."""
    boxes: tuple[Box, ...]
    """Its spans."""


class CrowdBox(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of the crowd that did one thing for a time; as high as their share of it."""

    x: float
    """Its left edge."""
    y: float
    """Its upper edge."""
    width: float
    """Its width."""
    height: float
    """Its height."""
    activity: Activity
    """What they did."""
    title: str
    """How many did what, in words."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A finding on the timeline."""

    x: float
    """Its place."""
    y: float
    """The height of its number."""
    number: int
    """The number of the finding in the report, from 1."""
    severity: str
    """Its weight."""
    title: str
    """The finding in words."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The whole drawing."""

    height: int
    """Its height."""
    rows: tuple[Row, ...]
    """Its lanes."""
    crowd: tuple[CrowdBox, ...]
    """The ranks without a lane, below the lanes."""
    crowd_y: int
    """Upper edge of the crowd."""
    crowd_count: int
    """Ranks in it."""
    marks: tuple[Mark, ...]
    """Its findings."""
    ticks: tuple[Label, ...]
    """The times."""
    activities: tuple[Activity, ...]
    """Activities that occur, for the legend."""


class TimedFinding(msgspec.Struct, frozen=True):
    """A finding with its place in time."""

    number: int
    """Its number in the report."""
    at_s: float
    """Seconds from the start of the run to the finding."""
    severity: str
    """Its weight."""
    title: str
    """It in words."""


def lay_out_timeline(course: RunCourse, findings: Sequence[TimedFinding]) -> Timeline | None:
    """Return the drawing; None if nothing was recorded."""
    end_s = max((lane.spans[-1].end_s for lane in course.lanes if lane.spans), default=0.0)
    if end_s <= 0:
        return None

    def x(at_s: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, at_s / end_s)), 1)

    marks: list[Mark] = []
    levels: list[float] = []
    for finding in sorted(findings, key=lambda f: f.at_s):
        mark_x = x(finding.at_s)
        level = next(
            (n for n, latest_x in enumerate(levels) if mark_x - latest_x >= MARK_DISTANCE), None
        )
        if level is None:
            levels.append(mark_x)
            level = len(levels) - 1
        levels[level] = mark_x
        marks.append(
            Mark(
                x=mark_x, y=16.0 + 20 * level, number=finding.number, severity=finding.severity,
                title=finding.title,
            )
        )  # fmt: skip
    top = TOP + 20 * max(0, len(levels) - 1)
    rows = tuple(
        _row(lane, top + n * LANE_HEIGHT, x) for n, lane in enumerate(course.lanes) if lane.spans
    )
    crowd_y = top + len(rows) * LANE_HEIGHT
    crowd = _crowd(course.crowd, crowd_y + 4, x)
    return Timeline(
        height=crowd_y + (CROWD_HEIGHT + 4 if crowd else 0) + 24,
        rows=rows,
        crowd=crowd,
        crowd_y=crowd_y + 4,
        crowd_count=len(course.crowd.names),
        marks=tuple(marks),
        ticks=tuple(Label(x(t), tick_time(t)) for t in time_ticks(end_s, 10)),
        activities=_legend(course),
    )


def lane_ranks(lane: Lane) -> str:
    """Return whose lane it is: ``ranks 0-2,5``."""
    unranked = () if lane.ranks else lane.names
    return describe_ranks(format_ranks(lane.ranks), len(lane.ranks), unranked)


def _row(lane: Lane, y: int, x: Callable[[float], float]) -> Row:
    ranks = lane_ranks(lane)
    boxes = []
    for span in lane.spans:
        from_x, to_x = x(span.begin_s), x(span.end_s)
        boxes.append(
            Box(
                x=from_x, width=round(max(1.0, to_x - from_x), 1), activity=span.activity,
                has_letter=to_x - from_x >= MIN_LETTER_WIDTH,
                title=f"{ranks}: {span.activity}, {tick_time(span.begin_s)} to {tick_time(span.end_s)}",
            )
        )  # fmt: skip
    label = " ".join((ranks, *lane.reasons[:1]))
    label = label if len(label) <= MAX_LABEL_LENGTH else f"{label[: MAX_LABEL_LENGTH - 1]}…"
    whole = f"{ranks}: {', '.join(lane.reasons)}" if lane.reasons else ranks
    return Row(y=y, label=label, ranks=whole, boxes=tuple(boxes))


def _crowd(crowd: Crowd, y: int, x: Callable[[float], float]) -> tuple[CrowdBox, ...]:
    boxes = []
    total = len(crowd.names)
    for span in crowd.spans:
        from_x, to_x = x(span.begin_s), x(span.end_s)
        from_top = 0.0
        for activity, count in span.counts:
            height = CROWD_HEIGHT * count / total
            boxes.append(
                CrowdBox(
                    x=from_x, y=round(y + from_top, 1), width=round(max(1.0, to_x - from_x), 1),
                    height=round(height, 1), activity=activity,
                    title=f"{count} of {total} other ranks: {activity}, "
                    f"{tick_time(span.begin_s)} to {tick_time(span.end_s)}",
                )
            )  # fmt: skip
            from_top += height
    return tuple(boxes)


def _legend(course: RunCourse) -> tuple[Activity, ...]:
    present = {span.activity for lane in course.lanes for span in lane.spans}
    present |= {activity for span in course.crowd.spans for activity, _ in span.counts}
    return tuple(activity for activity in Activity if activity in present)
