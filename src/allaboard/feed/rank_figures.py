"""The figures of every rank over a whole run, as a bounded number of times, and the ranks that lie apart."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from operator import add, mul
from statistics import median

import msgspec

from allaboard.analysis.performance.outlying_ranks import find_outlying_ranks, lasting_distances
from allaboard.facts import Activity
from allaboard.feed.series import ACTIVITIES, SeriesMembers, SeriesPoint

MAX_TIMES = 200
"""Times that are kept; of more, two neighbours become one."""
MAX_SAMPLES = 2
"""Points of the series that make a time. Each is a median of the last seconds: more would tell no more."""
MAX_LINES = 4
"""Outlying ranks of a figure that have a line of their own."""
_COMPARED = bytes(a in (Activity.TRAINING, Activity.WAITING) for a in ACTIVITIES).ljust(256, b"\0")
"""A byte for each activity: 1 if a rank is compared with the others while it does that."""


class Measure(msgspec.Struct, frozen=True):
    """A figure that each rank has."""

    name: str
    """What it is, in words."""
    oddness: str
    """What is said of a rank that lies apart."""
    unit: str
    """"s", "bytes" or "share"."""
    factor: float
    """Factor from the number in the series to that unit."""
    column: Callable[[SeriesPoint], Sequence[float | None]]
    """Where it stands in a point of the series."""
    is_low_odd: bool
    """True if low values are the odd ones."""
    min_share: float
    """Least distance from the median that matters, as a share of it; of shares the distance itself."""


MEASURES = (
    Measure("Step time", "slow", "s", 1e-3, lambda p: p.step_ms, False, 0.1),
    Measure("Waiting for other ranks", "waits least", "share", 1.0, lambda p: p.waiting, True, 0.1),
    Measure("Waiting for data", "loads longest", "share", 1.0, lambda p: p.input, False, 0.1),
    Measure("Memory", "most memory", "bytes", 1e6, lambda p: p.memory_mb, False, 0.2),
    Measure("Memory on GPUs", "most GPU memory", "bytes", 1e6, lambda p: p.gpu_memory_mb, False, 0.2),
)  # fmt: skip


class Band(msgspec.Struct, frozen=True):
    """The values of all ranks at one time."""

    elapsed_s: float
    """Seconds since the run began."""
    lowest: float
    low: float
    """A tenth of the ranks have less."""
    middle: float
    """The median."""
    high: float
    """A tenth of the ranks have more."""
    highest: float


class RankLineOverTime(msgspec.Struct, frozen=True):
    """One rank of a figure over the run."""

    name: str
    """Its process."""
    points: tuple[tuple[float, float], ...]
    """Seconds since the run began, and the value."""


class RankFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of all ranks."""

    measure: Measure
    """What it is."""
    bands: tuple[Band, ...]
    """All ranks over the run."""
    names: tuple[str, ...]
    """Names of the ranks' processes."""
    typical: tuple[float | None, ...]
    """Median of each rank over the run; None for a rank that never trained."""
    outlying: tuple[int, ...]
    """Indices of ranks that lie apart, the farthest first."""
    lines: tuple[RankLineOverTime, ...]
    """The first of them over the run."""


class _Bucket:
    """The sums of some neighbouring points of the series."""

    def __init__(self, names: tuple[str, ...], begin_s: float) -> None:
        size = len(names)
        self.names = names
        self.begin_s = begin_s
        self.end_s = begin_s
        self.counts: Sequence[int] = [0] * size
        self.sums: dict[str, Sequence[float]] = {m.name: [0.0] * size for m in MEASURES}
        self.points = 0

    def add(self, point: SeriesPoint) -> None:
        mask = bytes(point.activity).translate(_COMPARED)
        if len(mask) != len(self.counts):
            return
        self.points += 1
        self.end_s = point.elapsed_s
        compared = sum(mask)
        if not compared:
            return
        self.counts = list(map(add, self.counts, mask))
        for measure in MEASURES:
            column = measure.column(point)
            if len(column) == len(mask):
                values = [v or 0.0 for v in column] if None in column else column
                masked = values if compared == len(mask) else map(mul, values, mask)
                self.sums[measure.name] = list(map(add, self.sums[measure.name], masked))

    def merge(self, later: _Bucket) -> None:
        self.end_s = later.end_s
        self.points += later.points
        self.counts = list(map(add, self.counts, later.counts))
        self.sums = {k: list(map(add, v, later.sums[k])) for k, v in self.sums.items()}
        self.pack()

    def pack(self) -> None:
        """Keep the numbers as machine numbers: there may be thousands of ranks."""
        self.counts = array("l", self.counts)
        self.sums = {name: array("d", values) for name, values in self.sums.items()}


class FigureRecorder:
    """Takes in the points of a series one by one, and keeps at most `MAX_TIMES` sums of all ranks."""

    def __init__(self) -> None:
        self._buckets: list[_Bucket] = []
        self._samples = 1
        self._every = 1
        self._seen = 0

    def add(self, members: SeriesMembers, point: SeriesPoint) -> None:
        """Take in one point, if it is one of those that count."""
        self._seen += 1
        if self._seen % self._every:
            return
        newest = self._buckets[-1] if self._buckets else None
        if newest is None or newest.names != members.names or newest.points >= self._samples:
            if newest is not None:
                newest.pack()
            if len(self._buckets) >= MAX_TIMES:
                self._halve()
                # Of rounds with ever other ranks, each with a few points, the oldest go.
                del self._buckets[: max(0, len(self._buckets) - MAX_TIMES + 1)]
            self._buckets.append(_Bucket(members.names, point.elapsed_s))
        self._buckets[-1].add(point)

    def _halve(self) -> None:
        merged: list[_Bucket] = []
        has_partner = True
        for bucket in self._buckets:
            if has_partner or merged[-1].names != bucket.names:
                merged.append(bucket)
                has_partner = False
            else:
                merged[-1].merge(bucket)
                has_partner = True
        self._buckets = merged
        if self._samples < MAX_SAMPLES:
            self._samples *= 2
        else:
            self._every *= 2

    def figures(self) -> tuple[RankFigure, ...]:
        """Return the figures that at least two ranks have. Ranks are those of the longest round."""
        if not self._buckets:
            return ()
        points = Counter[tuple[str, ...]]()
        for bucket in self._buckets:
            points[bucket.names] += bucket.points
        names = points.most_common(1)[0][0]
        buckets = [b for b in self._buckets if b.names == names and any(b.counts)]
        figures = (_figure(measure, names, buckets) for measure in MEASURES)
        return tuple(figure for figure in figures if figure is not None)


def _figure(
    measure: Measure, names: tuple[str, ...], buckets: Sequence[_Bucket]
) -> RankFigure | None:
    # Every rank has a step time and memory; 0 stands for not known. Shares may be 0.
    may_be_zero = measure.unit == "share"
    rows: list[list[float | None]] = []
    for bucket in buckets:
        sums = bucket.sums[measure.name]
        rows.append(
            [
                measure.factor * value / count if count and (value or may_be_zero) else None
                for value, count in zip(sums, bucket.counts, strict=True)
            ]
        )
    if not any(any(row) for row in rows):
        return None
    bands = []
    for bucket, row in zip(buckets, rows, strict=True):
        values = sorted(value for value in row if value is not None)
        if values:
            bands.append(_band((bucket.begin_s + bucket.end_s) / 2, values))
    typical = tuple(_median_or_none(column) for column in zip(*rows, strict=True))
    known_typical = [value for value in typical if value is not None]
    if len(known_typical) < 2:
        return None
    least = measure.min_share * (1.0 if may_be_zero else median(known_typical))
    is_uniform = all(band.lowest == band.highest for band in bands)
    distances = [] if is_uniform else lasting_distances(rows, measure.is_low_odd)
    outlying = find_outlying_ranks(distances, least)
    return RankFigure(
        measure=measure,
        bands=tuple(bands),
        names=names,
        typical=typical,
        outlying=tuple(outlying),
        lines=tuple(_line(index, names, buckets, rows) for index in outlying[:MAX_LINES]),
    )


def _band(elapsed_s: float, values: Sequence[float]) -> Band:
    """Return the band of sorted values."""
    top = len(values) - 1
    lowest, low, middle, high, highest = (values[round(top * q)] for q in (0, 0.1, 0.5, 0.9, 1))
    return Band(round(elapsed_s, 2), lowest, low, middle, high, highest)


def _median_or_none(column: Sequence[float | None]) -> float | None:
    values = [value for value in column if value is not None and math.isfinite(value)]
    return median(values) if values else None


def _line(
    index: int,
    names: Sequence[str],
    buckets: Sequence[_Bucket],
    rows: Sequence[Sequence[float | None]],
) -> RankLineOverTime:
    points = []
    for bucket, row in zip(buckets, rows, strict=True):
        value = row[index]
        if value is not None:
            points.append((round((bucket.begin_s + bucket.end_s) / 2, 2), value))
    return RankLineOverTime(names[index], tuple(points))
