"""The scalars of a run, as TensorBoard and other trackers draw them: a row for each. Pure.

A new scalar is a new row. Those of `RUN_SCALARS` are of the job as a whole. Those of `RANK_SCALARS` show how
the ranks differ: the lowest and the highest value, and in a small job the value of each rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from allaboard.faces.metrics.run_totals import RunTotals, rank_label
from allaboard.facts import RankState, RunPhase, Snapshot
from allaboard.report.plain_text import clean

MAX_RANK_SERIES = 16
"""Ranks that have series of their own; in a larger job, the lowest and the highest value stand for all."""
RUN, SPREAD, RANKS = "allaboard", "allaboard_spread", "allaboard_ranks"
"""First parts of the names: trackers draw what shares one as a group, apart from the script's own."""


class ScalarPoint(NamedTuple):
    """All scalars at one time."""

    step: int
    """Steps of the rank that is furthest ahead, in this round."""
    unix_s: float
    """When the snapshot was taken (s since 1970)."""
    values: dict[str, float]
    """The scalars that are known, by name."""


class RunScalar(NamedTuple):
    """One scalar of the job."""

    name: str
    """Its name, with its unit."""
    help: str
    """What it says."""
    read: Callable[[Snapshot, RunTotals], float | None]
    """Returns its value; None if it is not known."""


class RankScalar(NamedTuple):
    """One scalar of every rank."""

    name: str
    """Its name, with its unit."""
    help: str
    """What it says."""
    read: Callable[[RankState], float | None]
    """Returns its value; None if it is not known."""


RUN_SCALARS: tuple[RunScalar, ...] = (
    RunScalar("steps_per_s", "Steps per second: the median over the ranks.", lambda s, _: s.run.steps_per_s),
    RunScalar("step_s", "Duration of a step: the median over the ranks (s).", lambda s, _: s.run.step_s),
    RunScalar("step_slowest_s", "Duration of a step of the slowest rank, without its waiting for others (s).",
              lambda s, _: s.run.step_longest_s),
    RunScalar("loss", "Loss as it was seen: the median over the ranks.", lambda s, _: s.run.loss),
    RunScalar("waiting_share", "Share of the time in which ranks wait for others: the median.",
              lambda s, _: s.run.waiting),
    RunScalar("data_share", "Share of the time in which ranks wait for data: the median.",
              lambda s, _: s.run.input),
    RunScalar("silent_s", "Seconds since any rank did anything new.", lambda s, _: s.run.silent_s),
    RunScalar("stalled", "1 while the job makes no progress, else 0.",
              lambda s, _: s.run.phase is RunPhase.STALLED),
    RunScalar("goodput_share", "Share of the run's time that went into steps.", lambda _, t: t.goodput()),
    RunScalar("cpu_cores", "Cores that all ranks use together.",
              lambda s, _: math.fsum(r.cpu for r in s.ranks)),
    RunScalar("memory_bytes", "Resident memory of all ranks together.",
              lambda s, _: sum(r.memory_nbytes for r in s.ranks) or None),
    RunScalar("gpu_memory_bytes", "Memory that all ranks hold on GPUs together.",
              lambda s, _: sum(r.gpu_memory_nbytes or 0 for r in s.ranks) or None),
    RunScalar("findings", "Findings that stand.",
              lambda s, _: sum(f.over is None for f in s.findings) + s.findings_left_out),
    RunScalar("restarts", "Restarts of all workers, or of one task.", lambda s, _: len(s.run.restarts)),
)  # fmt: skip
"""Scalars of the job."""

RANK_SCALARS: tuple[RankScalar, ...] = (
    RankScalar("steps", "Steps that the rank has done in this round.", lambda r: r.step),
    RankScalar("step_s", "Median duration of its last steps (s).", lambda r: r.step_s),
    RankScalar("loss", "Its last loss.", lambda r: r.loss),
    RankScalar("waiting_share", "Share of the time in which it waits for others.", lambda r: r.waiting),
    RankScalar("data_share", "Share of the time in which it waits for data.", lambda r: r.input),
    RankScalar("memory_bytes", "Its resident memory.", lambda r: r.memory_nbytes or None),
    RankScalar("gpu_memory_bytes", "Memory that it holds on GPUs.", lambda r: r.gpu_memory_nbytes),
    RankScalar("gpu_used_bytes", "Memory on its accelerator that tensors hold.",
               lambda r: r.device_memory.used_nbytes if r.device_memory else None),
    RankScalar("gpu_peak_bytes", "The most memory that tensors held at a time.",
               lambda r: (r.device_memory.peak_nbytes or None) if r.device_memory else None),
)  # fmt: skip
"""Scalars of every rank that lives."""


def read_scalars(snapshot: Snapshot, totals: RunTotals) -> ScalarPoint:
    """Return all scalars that are known."""
    values: dict[str, float] = {}
    for scalar in RUN_SCALARS:
        value = scalar.read(snapshot, totals)
        if value is not None:
            values[f"{RUN}/{scalar.name}"] = float(value)
    alive = [state for state in snapshot.ranks if not state.end]
    for rank_scalar in RANK_SCALARS:
        numbers = {
            clean(rank_label(state)): float(rank_value)
            for state in alive
            if (rank_value := rank_scalar.read(state)) is not None
        }
        if len(numbers) > 1:
            values[f"{SPREAD}/{rank_scalar.name}_lowest"] = min(numbers.values())
            values[f"{SPREAD}/{rank_scalar.name}_highest"] = max(numbers.values())
        if len(snapshot.ranks) <= MAX_RANK_SERIES:
            for label, number in numbers.items():
                values[f"{RANKS}/{rank_scalar.name}/rank {label}"] = number
    return ScalarPoint(snapshot.run.step_highest, unix_seconds(snapshot.taken_at), values)


def unix_seconds(utc: str) -> float:
    """Return a time of day (ISO 8601) as seconds since 1970; 0 if it is none."""
    try:
        return datetime.fromisoformat(utc).timestamp()
    except ValueError:
        return 0.0
