"""The time series of a run: steps, phases, waiting, loss and resources of every rank and host.

``series.jsonl`` in the run folder belongs to the journal. Its first line is `SeriesMembers`, which names the
ranks and hosts of the columns; another one follows when they change. Every further line is a `SeriesPoint`.
Points come once a second, rarer in a job of thousands of ranks, and the file is thinned when it has
`MAX_POINTS`, so that a run of any length leaves a file of bounded size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from allaboard.facts import Activity, HostState, Snapshot
from allaboard.feed.run_files import open_run_file, read_lines
from allaboard.launch.private_files import open_to_append

SERIES_NAME = "series.jsonl"
"""Name of the file in the run folder."""
SERIES_VERSION = 1
MAX_POINTS = 2000
"""Points in the file before every second one is removed."""
INTERVAL_S = 1.0
"""Seconds between two points at first."""
RANKS_PER_S = 256
"""Ranks whose states are written in a second, at most: beyond, points are further apart."""
ACTIVITIES = tuple(Activity)


class SeriesMembers(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="members"):
    """The ranks and hosts of the points that follow, in the order of their columns."""

    version: int = SERIES_VERSION
    """Version of this format."""
    names: tuple[str, ...] = ()
    """Names of the ranks' processes ("worker 1")."""
    ranks: tuple[int, ...] = ()
    """Their ranks; -1 if not known."""
    pids: tuple[int, ...] = ()
    """Their pids."""
    rank_hosts: tuple[str, ...] = ()
    """Their hosts."""
    hosts: tuple[str, ...] = ()
    """The hosts."""
    activities: tuple[str, ...] = tuple(ACTIVITIES)
    """Words for the numbers in ``SeriesPoint.activity``."""


class SeriesPoint(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="point", omit_defaults=True
):
    """All ranks and hosts at one time: a column per rank, then one per host. An empty column has only 0."""

    taken_at: str
    """Time of day."""
    elapsed_s: float
    """Seconds since the run began."""
    step: tuple[int, ...] = ()
    """Steps done."""
    step_ms: tuple[float, ...] = ()
    """Median duration of the last steps (ms)."""
    activity: tuple[int, ...] = ()
    """Number of the activity in ``SeriesMembers.activities``."""
    waiting: tuple[float, ...] = ()
    """Share of waiting for others."""
    input: tuple[float, ...] = ()
    """Share of waiting for data."""
    loss: tuple[float | None, ...] = ()
    """The last loss; null if not known."""
    cpu: tuple[float, ...] = ()
    """Cores in use."""
    memory_mb: tuple[float, ...] = ()
    """Resident memory (10^6 bytes)."""
    gpu_memory_mb: tuple[float | None, ...] = ()
    """Memory on GPUs (10^6 bytes); null if not known."""
    gpu_used_mb: tuple[float | None, ...] = ()
    """Memory on an accelerator that tensors hold, as the framework counts it (10^6 bytes); null if not
    known."""
    gpu_reserved_mb: tuple[float | None, ...] = ()
    """Memory that the framework has taken from the driver for it (10^6 bytes); null if not known."""
    host_cpu: tuple[float, ...] = ()
    """Cores that the job uses on the host."""
    host_memory_mb: tuple[float, ...] = ()
    """Memory of the host in use, by whomever (10^6 bytes)."""
    host_disk_mb: tuple[float, ...] = ()
    """Space in use on the fullest disk that the job writes to (10^6 bytes)."""
    host_received_mb_s: tuple[float, ...] = ()
    """Bytes that the job's processes receive (10^6 a second)."""
    host_sent_mb_s: tuple[float, ...] = ()
    """Bytes that the job's processes send (10^6 a second)."""
    host_gpu: tuple[float | None, ...] = ()
    """Mean share in which the host's GPUs are busy; null if not known."""


SeriesLine = SeriesMembers | SeriesPoint
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(SeriesLine)


def members_of(snapshot: Snapshot) -> SeriesMembers:
    """Return the columns of a snapshot."""
    ranks = snapshot.ranks
    return SeriesMembers(
        names=tuple(r.name for r in ranks),
        ranks=tuple(r.rank for r in ranks),
        pids=tuple(r.pid for r in ranks),
        rank_hosts=tuple(r.host for r in ranks),
        hosts=tuple(h.host for h in snapshot.hosts),
    )


def series_point(snapshot: Snapshot) -> SeriesPoint:
    """Return the point of a snapshot."""
    ranks, hosts = snapshot.ranks, snapshot.hosts
    memories = [r.device_memory for r in ranks]
    return SeriesPoint(
        taken_at=snapshot.taken_at,
        elapsed_s=round(snapshot.run.elapsed_s, 2),
        step=tuple(r.step for r in ranks) if any(r.step for r in ranks) else (),
        step_ms=_unless_all_zero(tuple(round((r.step_s or 0.0) * 1e3, 2) for r in ranks)),
        activity=tuple(ACTIVITIES.index(r.activity) for r in ranks),
        waiting=_unless_all_zero(tuple(round(r.waiting, 2) for r in ranks)),
        input=_unless_all_zero(tuple(round(r.input, 2) for r in ranks)),
        loss=tuple(r.loss for r in ranks) if any(r.loss is not None for r in ranks) else (),
        cpu=_unless_all_zero(tuple(round(r.cpu, 2) for r in ranks)),
        memory_mb=_unless_all_zero(tuple(round(r.memory_nbytes / 1e6, 1) for r in ranks)),
        gpu_memory_mb=_megabytes(r.gpu_memory_nbytes for r in ranks),
        gpu_used_mb=_megabytes(m.used_nbytes if m else None for m in memories),
        gpu_reserved_mb=_megabytes((m.reserved_nbytes or None) if m else None for m in memories),
        host_cpu=_unless_all_zero(tuple(round(h.cpu, 2) for h in hosts)),
        host_memory_mb=_unless_all_zero(tuple(_level(h, "host memory") for h in hosts)),
        host_disk_mb=_unless_all_zero(tuple(_level(h, "disk") for h in hosts)),
        host_received_mb_s=_unless_all_zero(tuple(round(h.received_per_s / 1e6, 3) for h in hosts)),
        host_sent_mb_s=_unless_all_zero(tuple(round(h.sent_per_s / 1e6, 3) for h in hosts)),
        host_gpu=_gpu_use(hosts),
    )


def _unless_all_zero(column: tuple[float, ...]) -> tuple[float, ...]:
    return column if any(column) else ()


def _megabytes(values: Iterable[int | None]) -> tuple[float | None, ...]:
    """Return the column of these numbers of bytes; it is empty if none is known."""
    column = tuple(None if v is None else round(v / 1e6, 1) for v in values)
    return column if any(v is not None for v in column) else ()


def _gpu_use(hosts: tuple[HostState, ...]) -> tuple[float | None, ...]:
    if not any(h.gpus for h in hosts):
        return ()
    return tuple(
        round(sum(g.busy for g in h.gpus) / len(h.gpus), 3) if h.gpus else None for h in hosts
    )


def _level(host: HostState, name: str) -> float:
    """Return the use of the fullest resource whose name begins so (10^6 bytes)."""
    levels = [r for r in host.resources if r.name.startswith(name)]
    fullest = max(levels, key=lambda r: r.used / r.limit if r.limit else 0.0, default=None)
    return round(fullest.used / 1e6, 1) if fullest is not None else 0.0


class SeriesRecorder:
    """Decides which snapshots become points, and keeps the file's size bounded.

    The first error of the disk is kept in ``write_error``; from then on nothing is written.
    """

    def __init__(self, folder: Path, max_points: int = MAX_POINTS) -> None:
        self._path = folder / SERIES_NAME
        self._max_points = max_points
        self._members: SeriesMembers | None = None
        self._points = 0
        self._interval_s = INTERVAL_S
        self._next_at = 0.0
        self.write_error = ""

    def is_due(self, elapsed_s: float, ranks: int) -> bool:
        """Return True if a snapshot is wanted now, of a job of so many ranks."""
        if self.write_error or elapsed_s < self._next_at:
            return False
        interval_s = max(self._interval_s, ranks / RANKS_PER_S)
        # A tick's lateness must not add up, nor may a pause be made up for.
        self._next_at = max(self._next_at + interval_s, elapsed_s + interval_s / 2)
        return True

    def add(self, snapshot: Snapshot) -> None:
        """Write the point of a snapshot."""
        members = members_of(snapshot)
        lines = [] if members == self._members else [_ENCODER.encode(members)]
        self._members = members
        lines.append(_ENCODER.encode(series_point(snapshot)))
        try:
            with os.fdopen(open_to_append(self._path), "ab") as file:
                file.write(b"".join(line + b"\n" for line in lines))
            self._points += 1
            if self._points >= self._max_points:
                self._thin()
        except OSError as error:
            self.write_error = f"{error.strerror}: {self._path}"

    def _thin(self) -> None:
        """Remove every second point from the file, and take half as many from now on."""
        kept = self._path.with_suffix(".new")
        kept.unlink(missing_ok=True)
        count = 0
        with self._path.open("rb") as source, os.fdopen(open_to_append(kept), "ab") as target:
            for line in source:
                if line.startswith(b'{"kind":"point"'):
                    count += 1
                    if count % 2 == 0:
                        continue
                target.write(line)
        kept.replace(self._path)
        self._points = (count + 1) // 2
        self._interval_s *= 2


def read_series(folder: Path) -> Iterator[SeriesLine]:
    """Yield the lines of a run's series. A torn or foreign line is skipped; no file that can be read is an
    empty series."""
    try:
        with open_run_file(folder / SERIES_NAME) as file:
            for _, line in read_lines(file):
                try:
                    yield _DECODER.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
    except OSError:
        return
