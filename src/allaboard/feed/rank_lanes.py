"""What each rank did over the whole run, as lanes of a bounded number of columns. Ranks that did the same
share a lane."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from allaboard.facts import Activity, Point
from allaboard.feed.journal_replay import course_point
from allaboard.feed.series import ACTIVITIES, SeriesMembers, SeriesPoint, read_series

COLUMNS = 160
"""Columns of a lane."""
MAX_LANES = 48
"""Lanes that are kept; further ones are counted."""
_ROUTINE = frozenset((Activity.TRAINING, Activity.WAITING, Activity.SERVING, Activity.JOINED))
"""What a healthy rank does in turn: of these the first in a column is shown."""
_WEIGHTS = {
    activity: 0 if activity in _ROUTINE else weight
    for weight, activity in enumerate(
        (
            Activity.DONE, Activity.ENDED, Activity.LEAVING, Activity.OWN_CODE, Activity.STARTING,
            Activity.IMPORTING, Activity.AT_GATE, Activity.JOINING, Activity.EVALUATION,
            Activity.CHECKPOINT, Activity.STOPPED, Activity.LOST, Activity.FAILED,
            *sorted(_ROUTINE),
        ),
        start=1,
    )
}  # fmt: skip
"""Of two activities in one column the heavier one is shown: a short trouble must not vanish."""


class Span(msgspec.Struct, frozen=True):
    """A time in which the ranks of a lane did one thing."""

    begin_s: float
    """Its begin, in seconds since the run began."""
    end_s: float
    """Its end."""
    activity: Activity
    """What they did."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The course of some ranks that did the same at all times."""

    ranks: tuple[int, ...]
    """Their ranks; () if none is known."""
    names: tuple[str, ...]
    """Names of their processes, in the same order."""
    spans: tuple[Span, ...]
    """What they did, oldest first."""


class ResourcePoint(msgspec.Struct, frozen=True, kw_only=True):
    """What the hosts used together at one time."""

    elapsed_s: float
    """Seconds since the run began."""
    received_per_s: float = 0.0
    """Bytes that the job's processes received."""
    sent_per_s: float = 0.0
    """Bytes that they sent."""
    gpu: float | None = None
    """Mean share in which the GPUs were busy; None if not measured."""
    gpu_memory_nbytes: float | None = None
    """Memory on GPUs; None if not measured."""
    gpu_used_nbytes: float | None = None
    """Memory on accelerators that tensors hold; None if no framework counts it."""
    gpu_reserved_nbytes: float | None = None
    """Memory that frameworks have taken from the driver for it; None if not known."""


class RunCourse(msgspec.Struct, frozen=True, kw_only=True):
    """The whole time series of a run, thinned for one page."""

    points: tuple[Point, ...] = ()
    """The job as a whole."""
    resources: tuple[ResourcePoint, ...] = ()
    """What its hosts used, at the same times."""
    lanes: tuple[Lane, ...] = ()
    """Its ranks."""
    lanes_left_out: int = 0
    """Lanes that are too many to be kept."""


class _Row(msgspec.Struct, frozen=True):
    """The activities of all ranks at one time; a byte each, since there may be thousands of ranks."""

    elapsed_s: float
    members: SeriesMembers
    activity: bytes


def read_course(folder: Path, wanted_names: frozenset[str] = frozenset()) -> RunCourse:
    """Read the series of a run folder; no file is an empty course.

    Of too many lanes those with ``wanted_names`` are kept first.
    """
    points: list[Point] = []
    resources: list[ResourcePoint] = []
    rows: list[_Row] = []
    members = SeriesMembers()
    for line in read_series(folder):
        if isinstance(line, SeriesMembers):
            members = line
            continue
        points.append(course_point(line, points[-1] if points else None))
        resources.append(_resources(line))
        if line.activity and max(line.activity) < len(ACTIVITIES) and min(line.activity) >= 0:
            rows.append(_Row(line.elapsed_s, members, bytes(line.activity)))
    lanes = _order_lanes(_lanes(rows), wanted_names)
    return RunCourse(
        points=tuple(points),
        resources=tuple(resources),
        lanes=tuple(sorted(lanes[:MAX_LANES], key=lambda lane: (lane.ranks, lane.names))),
        lanes_left_out=max(0, len(lanes) - MAX_LANES),
    )


def _resources(line: SeriesPoint) -> ResourcePoint:
    gpus = [share for share in line.host_gpu if share is not None]
    return ResourcePoint(
        elapsed_s=line.elapsed_s,
        received_per_s=sum(line.host_received_mb_s) * 1e6,
        sent_per_s=sum(line.host_sent_mb_s) * 1e6,
        gpu=sum(gpus) / len(gpus) if gpus else None,
        gpu_memory_nbytes=_sum_nbytes(line.gpu_memory_mb),
        gpu_used_nbytes=_sum_nbytes(line.gpu_used_mb),
        gpu_reserved_nbytes=_sum_nbytes(line.gpu_reserved_mb),
    )


def _sum_nbytes(column: tuple[float | None, ...]) -> float | None:
    known = [mb for mb in column if mb is not None]
    return sum(known) * 1e6 if known else None


def _lanes(rows: list[_Row]) -> list[Lane]:
    if not rows:
        return []
    begin_s = rows[0].elapsed_s
    column_s = max(0.001, (rows[-1].elapsed_s - begin_s) / COLUMNS)
    # Two rounds of one rank are two processes with one name: the lane is that of the rank.
    cells: dict[tuple[int, str], bytearray] = {}
    unseen = len(ACTIVITIES)
    weights = [_WEIGHTS[a] for a in ACTIVITIES]
    for row in rows:
        column = min(COLUMNS - 1, int((row.elapsed_s - begin_s) / column_s))
        for key, number in zip(_keys(row.members), row.activity, strict=False):
            lane = cells.get(key)
            if lane is None:
                lane = cells[key] = bytearray([unseen] * COLUMNS)
            earlier = lane[column]
            if earlier == unseen or weights[number] > weights[earlier]:
                lane[column] = number
    _fill_gaps(cells.values(), unseen)
    alike: dict[bytes, list[tuple[int, str]]] = {}
    for key, lane in cells.items():
        alike.setdefault(bytes(lane), []).append(key)
    return [_lane(keys, lane, begin_s, column_s, unseen) for lane, keys in alike.items()]


def _keys(members: SeriesMembers) -> list[tuple[int, str]]:
    names = members.names
    ranks: Iterable[int] = members.ranks or (-1,) * len(names)
    return [(rank, name) for rank, name in zip(ranks, names, strict=False)]


def _fill_gaps(lanes: Iterable[bytearray], unseen: int) -> None:
    """Let each activity last until the next one is known: points may be further apart than columns."""
    for lane in lanes:
        latest = unseen
        for column, number in enumerate(lane):
            if number == unseen:
                lane[column] = latest
            else:
                latest = number


def _lane(
    keys: list[tuple[int, str]], cells: bytes, begin_s: float, column_s: float, unseen: int
) -> Lane:
    spans: list[Span] = []
    start = 0
    for column in range(1, COLUMNS + 1):
        if column < COLUMNS and cells[column] == cells[start]:
            continue
        if cells[start] != unseen:
            bounds_s = (begin_s + start * column_s, begin_s + column * column_s)
            spans.append(
                Span(round(bounds_s[0], 2), round(bounds_s[1], 2), ACTIVITIES[cells[start]])
            )
        start = column
    keys = sorted(keys)
    return Lane(
        ranks=tuple(rank for rank, _ in keys if rank >= 0),
        names=tuple(name for _, name in keys),
        spans=tuple(spans),
    )


def _order_lanes(lanes: list[Lane], wanted_names: frozenset[str]) -> list[Lane]:
    """Return the lanes with those first that are kept in any case, then those of the fewest ranks."""
    return sorted(lanes, key=lambda lane: (wanted_names.isdisjoint(lane.names), len(lane.names)))
