"""Which scalars a snapshot has, and how the ranks of small and large jobs are shown."""

from __future__ import annotations

import msgspec

from allaboard.faces.experiments.finding_note import note_finding
from allaboard.faces.experiments.scalar_table import (
    MAX_RANK_SERIES,
    RANK_SCALARS,
    RUN_SCALARS,
    read_scalars,
    unix_seconds,
)
from allaboard.faces.metrics.run_totals import RunTotals
from allaboard.facts import Snapshot
from watched import AT, hanging_snapshot, healthy_snapshot, stopped_finding


def values_of(snapshot: Snapshot) -> dict[str, float]:
    return read_scalars(snapshot, RunTotals()).values


def test_a_point_has_the_steps_and_the_time_of_its_snapshot() -> None:
    point = read_scalars(healthy_snapshot(), RunTotals())
    assert (point.step, point.unix_s) == (400, unix_seconds(AT))
    assert point.values["allaboard/steps_per_s"] == 20.0
    assert point.values["allaboard/step_s"] == 0.05
    assert point.values["allaboard/memory_bytes"] == 3 * 321_000_000
    assert point.values["allaboard_ranks/memory_bytes/rank 2"] == 321_000_000


def test_a_value_that_is_not_known_has_no_scalar() -> None:
    snapshot = healthy_snapshot()
    assert not any("gpu" in name or "loss" in name for name in values_of(snapshot))
    first, *others = snapshot.ranks
    measured = msgspec.structs.replace(first, gpu_memory_nbytes=5, loss=2.5)
    values = values_of(msgspec.structs.replace(snapshot, ranks=(measured, *others)))
    assert values["allaboard/gpu_memory_bytes"] == 5
    assert values["allaboard_ranks/loss/rank 0"] == 2.5
    assert "allaboard_ranks/loss/rank 1" not in values
    assert "allaboard_spread/loss_lowest" not in values  # one value has no spread


def test_the_spread_is_that_of_the_ranks_that_live() -> None:
    snapshot = healthy_snapshot(3)
    steps = [
        msgspec.structs.replace(state, step=step, end=end)
        for state, step, end in zip(
            snapshot.ranks, (1, 20, 30), ("exit code 1", "", ""), strict=True
        )
    ]
    values = values_of(msgspec.structs.replace(snapshot, ranks=tuple(steps)))
    assert values["allaboard_spread/steps_lowest"] == 20
    assert values["allaboard_spread/steps_highest"] == 30
    assert "allaboard_ranks/steps/rank 0" not in values


def test_a_large_job_has_the_spread_instead_of_each_rank() -> None:
    small, large = values_of(healthy_snapshot(MAX_RANK_SERIES)), values_of(healthy_snapshot(500))
    assert f"allaboard_ranks/steps/rank {MAX_RANK_SERIES - 1}" in small
    assert not any(name.startswith("allaboard_ranks/") for name in large)
    assert large["allaboard_spread/steps_lowest"] == 400
    assert len(large) <= len(RUN_SCALARS) + 2 * len(RANK_SCALARS)


def test_a_hang_is_seen() -> None:
    values = values_of(hanging_snapshot())
    assert values["allaboard/stalled"] == 1 and values["allaboard/findings"] == 1


def test_a_finding_is_shown_as_it_is_on_a_terminal() -> None:
    note = note_finding(stopped_finding(summary="worker 1 <b>\x1b[31m`is`"), 40)
    assert (note.step, note.title) == (40, "HANG001 stopped (worker 1)")
    assert note.unix_s == unix_seconds(AT)
    assert "\n    error HANG001 stopped: worker 1 <b>\\x1b[31m`is`" in note.text
    assert "\n      do   kill -CONT 101" in note.text
    resolved = note_finding(stopped_finding(over="2026-11-25T12:01:00Z"), 41)
    assert "resolved" in resolved.title and resolved.unix_s == note.unix_s + 60
