"""What each rank did over the whole run, as lanes of a bounded number of columns. Ranks that did the same
share a lane; of too many lanes those that stand out are kept, and the other ranks are a crowd."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from allaboard.facts import Activity, Finding, Point
from allaboard.feed.journal_replay import course_point
from allaboard.feed.lane_choice import (
    MAX_LANES,
    Crowd,
    choose_lanes,
    find_troubles,
    gather_crowd,
    notable_ranks,
)
from allaboard.feed.rank_figures import FigureRecorder, RankFigure
from allaboard.feed.series import ACTIVITIES, SeriesMembers, SeriesPoint, read_series

COLUMNS = 160
"""Columns of a lane."""
UNSEEN = len(ACTIVITIES)
"""Number in a column in which nothing is known of the rank."""
_WEIGHTS = {
    activity: weight
    for weight, activity in enumerate(
        (
            Activity.JOINED, Activity.WAITING, Activity.TRAINING, Activity.SERVING,
            Activity.DONE, Activity.ENDED, Activity.LEAVING, Activity.OWN_CODE, Activity.STARTING,
            Activity.IMPORTING, Activity.AT_GATE, Activity.JOINING, Activity.EVALUATION,
            Activity.CHECKPOINT, Activity.STOPPED, Activity.LOST, Activity.FAILED,
        ),
        start=1,
    )
}  # fmt: skip
"""Of the activities in one column the heaviest is shown: a short trouble must not vanish, and a rank counts
as waiting only where it did nothing else."""
_TO_WEIGHT = bytes(_WEIGHTS[a] for a in ACTIVITIES).ljust(256, b"\0")
_TO_NUMBER = bytes(
    next((n for n, a in enumerate(ACTIVITIES) if _WEIGHTS[a] == weight), UNSEEN)
    for weight in range(256)
)


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
    reasons: tuple[str, ...] = ()
    """Why they stand out; () for ranks that do not."""


class ResourcePoint(msgspec.Struct, frozen=True, kw_only=True):
    """What the hosts used together at one time."""

    elapsed_s: float
    """Seconds since the run began."""
    received_per_s: float = 0.0
    """Bytes that the job's processes received."""
    sent_per_s: float = 0.0
    """Bytes that they sent."""
    disk_nbytes: float | None = None
    """Space in use on the fullest disk that the job writes to; None if not measured."""
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
    """Its ranks; where there are too many lanes, those that stand out, the most important first."""
    crowd: Crowd = Crowd()
    """The ranks that have no lane."""
    figures: tuple[RankFigure, ...] = ()
    """The figures of its ranks."""
    notable: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names of ranks that stand out and the reasons, the most important rank first."""


class _Row(msgspec.Struct, frozen=True):
    """The activities of all ranks at one time; a byte each, since there may be thousands of ranks."""

    elapsed_s: float
    members: SeriesMembers
    activity: bytes


def read_course(folder: Path, findings: Sequence[Finding] = ()) -> RunCourse:
    """Read the series of a run folder; no file is an empty course.

    Ranks that ``findings`` name stand out, in the order of the findings.
    """
    points: list[Point] = []
    resources: list[ResourcePoint] = []
    rows: list[_Row] = []
    members = SeriesMembers()
    recorder = FigureRecorder()
    for line in read_series(folder):
        if isinstance(line, SeriesMembers):
            members = line
            continue
        points.append(course_point(line, points[-1] if points else None))
        resources.append(_resources(line))
        if line.activity and max(line.activity) < len(ACTIVITIES) and min(line.activity) >= 0:
            rows.append(_Row(line.elapsed_s, members, bytes(line.activity)))
            recorder.add(members, line)
    figures = recorder.figures()
    lanes, crowd, notable = _lanes(rows, findings, figures)
    return RunCourse(
        points=tuple(points),
        resources=tuple(resources),
        lanes=tuple(lanes),
        crowd=crowd,
        figures=figures,
        notable=tuple(notable.items()),
    )


def _resources(line: SeriesPoint) -> ResourcePoint:
    gpus = [share for share in line.host_gpu if share is not None]
    return ResourcePoint(
        elapsed_s=line.elapsed_s,
        received_per_s=sum(line.host_received_mb_s) * 1e6,
        sent_per_s=sum(line.host_sent_mb_s) * 1e6,
        disk_nbytes=max(line.host_disk_mb) * 1e6 if line.host_disk_mb else None,
        gpu=sum(gpus) / len(gpus) if gpus else None,
        gpu_memory_nbytes=_sum_nbytes(line.gpu_memory_mb),
        gpu_used_nbytes=_sum_nbytes(line.gpu_used_mb),
        gpu_reserved_nbytes=_sum_nbytes(line.gpu_reserved_mb),
    )


def _sum_nbytes(column: tuple[float | None, ...]) -> float | None:
    measured = [mb for mb in column if mb is not None]
    return sum(measured) * 1e6 if measured else None


def _lanes(
    rows: list[_Row], findings: Sequence[Finding], figures: Sequence[RankFigure]
) -> tuple[list[Lane], Crowd, dict[str, tuple[str, ...]]]:
    """Return the lanes that are shown, the others, and the ranks that stand out."""
    if not rows:
        return [], Crowd(), notable_ranks(findings, (), figures, 0)
    begin_s = rows[0].elapsed_s
    column_s = max(0.001, (rows[-1].elapsed_s - begin_s) / COLUMNS)
    cells = _cells(rows, begin_s, column_s)
    courses: dict[bytes, list[str]] = {}
    for (_, name), lane in cells:
        courses.setdefault(lane, []).append(name)
    notable = notable_ranks(findings, find_troubles(courses.items()), figures, len(cells))
    # Why a rank stands out is written on its lane: it shares it only with ranks of which that is true.
    alike: dict[tuple[bytes, tuple[str, ...]], list[tuple[int, str]]] = {}
    for key, lane in cells:
        alike.setdefault((lane, notable.get(key[1], ())), []).append(key)
    keys = [sorted(lane_keys) for lane_keys in alike.values()]
    lanes = [
        (lane, [name for _, name in lane_keys])
        for (lane, _), lane_keys in zip(alike, keys, strict=True)
    ]
    shown, crowd = sorted(range(len(lanes)), key=lambda n: keys[n]), Crowd()
    if len(lanes) > MAX_LANES:
        shown, left_out = choose_lanes(lanes, notable)
        crowd = gather_crowd([lanes[n] for n in left_out], begin_s, column_s)
    shown_lanes = [_lane(keys[n], lanes[n][0], begin_s, column_s, notable) for n in shown]
    return shown_lanes, crowd, notable


def _cells(
    rows: list[_Row], begin_s: float, column_s: float
) -> list[tuple[tuple[int, str], bytes]]:
    """Return each rank with its columns. Two rounds of one rank are two processes with one name: one lane."""
    keys: dict[tuple[int, str], int] = {}
    columns: list[bytes] = [b""] * COLUMNS
    members: SeriesMembers | None = None
    places: list[int] = []
    for row in rows:
        if row.members is not members:
            members = row.members
            places = [keys.setdefault(key, len(keys)) for key in _keys(members)]
        weights = row.activity.translate(_TO_WEIGHT)
        if places != list(range(len(weights))):
            spread = bytearray(len(keys))
            for index, weight in zip(places, weights, strict=False):
                spread[index] = weight
            weights = bytes(spread)
        column = min(COLUMNS - 1, int((row.elapsed_s - begin_s) / column_s))
        earlier = columns[column]
        if weights != earlier:
            size = max(len(earlier), len(weights))
            columns[column] = bytes(
                map(max, earlier.ljust(size, b"\0"), weights.ljust(size, b"\0"))
            )
    whole = [column.ljust(len(keys), b"\0") for column in columns]
    lanes = [bytes(lane).translate(_TO_NUMBER) for lane in zip(*whole, strict=True)]
    return list(zip(keys, map(_without_gaps, lanes), strict=True))


def _keys(members: SeriesMembers) -> list[tuple[int, str]]:
    names = members.names
    ranks: Iterable[int] = members.ranks or (-1,) * len(names)
    return [(rank, name) for rank, name in zip(ranks, names, strict=False)]


def _without_gaps(lane: bytes) -> bytes:
    """Let each activity last until the next one is known: points may be further apart than columns."""
    filled = bytearray(lane)
    latest = UNSEEN
    for column, number in enumerate(lane) if UNSEEN in lane else ():
        if number == UNSEEN:
            filled[column] = latest
        latest = filled[column]
    return bytes(filled)


def _lane(
    keys: Sequence[tuple[int, str]],
    cells: bytes,
    begin_s: float,
    column_s: float,
    notable: Mapping[str, tuple[str, ...]],
) -> Lane:
    spans: list[Span] = []
    start = 0
    for column in range(1, COLUMNS + 1):
        if column < COLUMNS and cells[column] == cells[start]:
            continue
        if cells[start] != UNSEEN:
            bounds_s = (begin_s + start * column_s, begin_s + column * column_s)
            spans.append(
                Span(round(bounds_s[0], 2), round(bounds_s[1], 2), ACTIVITIES[cells[start]])
            )
        start = column
    return Lane(
        ranks=tuple(rank for rank, _ in keys if rank >= 0),
        names=tuple(name for _, name in keys),
        spans=tuple(spans),
        reasons=notable.get(keys[0][1], ()),
    )
