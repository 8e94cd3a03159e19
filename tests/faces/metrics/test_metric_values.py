"""The numbers of the metrics: what adds up, what stays bounded, and that no label can break a line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allaboard.faces.metrics.metric_table import (
    MAX_NAMED_MEMBERS,
    MAX_RANK_SERIES,
    METRICS,
    STEP_SECONDS,
    JobPicture,
)
from allaboard.faces.metrics.read_metrics import MAX_LABEL_LENGTH, read_families
from allaboard.faces.metrics.run_totals import RunTotals
from allaboard.faces.metrics.step_histogram import StepHistogram, step_durations
from allaboard.facts import Activity, DeviceMemory, RankState, Snapshot, Who
from allaboard.facts.snapshot.host_state import (
    GpuState,
    HostState,
    LoadState,
    ResourceState,
    StoreState,
)
from allaboard.facts.snapshot.run_state import Point, RestartState, RunPhase, RunState
from watched import hanging_snapshot, stopped_finding

ROOT = Path(__file__).parents[3]


def rank(number: int, step: int = 0, **changes: Any) -> RankState:
    fields: dict[str, Any] = {
        "name": f"worker {number}", "activity": Activity.TRAINING, "rank": number, "host": "a",
        "pid": 100 + number, "step": step, "step_s": 0.5,
    }  # fmt: skip
    return RankState(**(fields | changes))


def picture(elapsed_s: float, *ranks: RankState, **changes: Any) -> Snapshot:
    fields: dict[str, Any] = {
        "job": "j",
        "phase": RunPhase.RUNNING,
        "elapsed_s": elapsed_s,
        "step_s": 0.5,
    }
    return Snapshot(taken_at="t", run=RunState(**(fields | changes)), ranks=ranks)


def totals_of(*snapshots: Snapshot) -> RunTotals:
    totals = RunTotals()
    for snapshot in snapshots:
        totals.add(snapshot)
    return totals


def values(snapshot: Snapshot, totals: RunTotals | None = None) -> dict[str, dict[Any, float]]:
    families = read_families(JobPicture(snapshot, totals or totals_of(snapshot)))
    return {f.metric.name: dict(f.series) for f in families}


@pytest.mark.parametrize(
    ("steps", "usual_s", "pause_s", "durations"),
    [
        (0, 0.5, 9.0, ()),
        (2, 0.5, 1.0, ((0.5, 2),)),
        (2, 0.5, None, ((0.5, 2),)),
        (3, 0.1, 2.2, ((0.1, 3),)),  # no longer than the distance of two snapshots
        (1, 0.5, 60.0, ((60.0, 1),)),
        (3, 0.5, 60.0, ((59.0, 1), (0.5, 2))),
        (2, None, 5.0, ((2.5, 2),)),
        (2, None, None, ()),
    ],
)
def test_the_durations_of_new_steps(
    steps: int, usual_s: float | None, pause_s: float | None, durations: Any
) -> None:
    assert step_durations(steps, usual_s, pause_s) == durations


def test_buckets_count_up_to_their_bound() -> None:
    histogram = StepHistogram()
    histogram.add(((0.5, 2), (0.6, 1), (1000.0, 1)))
    buckets = dict(histogram.buckets)
    assert (buckets["0.25"], buckets["0.5"], buckets["1.0"], buckets["300.0"]) == (0, 2, 3, 3)
    assert buckets["+Inf"] == histogram.count == 4 and histogram.sum_s == pytest.approx(1001.6)


def test_a_rank_that_is_replaced_keeps_its_steps() -> None:
    totals = totals_of(
        picture(1.0, rank(0, 10), rank(1, 10)),
        picture(2.0, rank(0, 12), rank(1, 12)),
        picture(3.0, rank(0, 14), rank(1, 0, pid=900)),
        picture(4.0, rank(0, 16), rank(1, 3, pid=900)),
    )
    assert totals.steps == {"0": 16, "1": 15}
    assert (
        totals.step_seconds.count == 2 + 2 + 2 + 2 + 3
    )  # how long the first ones took is not known


def test_the_same_snapshot_twice_adds_nothing() -> None:
    snapshot = picture(2.0, rank(0, 12, waiting=0.5))
    totals = totals_of(picture(1.0, rank(0, 10)), snapshot, snapshot, picture(1.5, rank(0, 50)))
    assert totals.steps["0"] == 12 and totals.waiting_s["0", "ranks"] == pytest.approx(0.5)


def test_waiting_adds_up_by_what_for() -> None:
    totals = totals_of(
        picture(0.0, rank(0), rank(1)),
        picture(2.0, rank(0, activity=Activity.AT_GATE), rank(1, waiting=0.25, input=0.5)),
        picture(4.0, rank(0, activity=Activity.CHECKPOINT, waiting=1.0), rank(1, end="SIGKILL")),
        picture(1000.0, rank(0, waiting=1.0)),  # the feed was not read meanwhile
    )
    assert {k: v for k, v in totals.waiting_s.items() if v} == {
        ("0", "roll-call"): 2.0,
        ("1", "ranks"): 0.5,
        ("1", "data"): 1.0,
        ("0", "checkpoint"): 2.0,
        ("0", "ranks"): 30.0,
    }


def test_goodput_is_the_share_of_time_in_steps() -> None:
    totals = totals_of(
        picture(0.0, rank(0)), picture(10.0, rank(0, 10)), picture(20.0, rank(0, 10))
    )
    assert totals.goodput() == pytest.approx(10 * 0.5 / 20)
    late = RunTotals()
    late.add_course((Point(elapsed_s=0.0), Point(elapsed_s=5.0, step=8, step_s=0.5)))
    late.add(picture(8.0, rank(0, 10)))
    late.add_course((Point(elapsed_s=0.0), Point(elapsed_s=5.0, step=8, step_s=0.5)))
    assert late.goodput() == pytest.approx(8 * 0.5 / 8)


def test_a_finding_stands_until_it_is_resolved_or_the_run_has_ended() -> None:
    standing = hanging_snapshot(3, stopped_finding())
    series = {("HANG001", "stopped", "1", "error"): 1.0}
    assert values(standing)["allaboard_finding"] == series
    assert values(standing)["allaboard_ranks"][("stopped",)] == 1
    assert "allaboard_finding" not in values(hanging_snapshot(3, stopped_finding(over="now")))
    ended = msgspec.structs.replace(
        standing, run=msgspec.structs.replace(standing.run, outcome="hang", phase=RunPhase.ENDED)
    )
    assert "allaboard_finding" not in values(ended)
    assert values(ended)["allaboard_run_outcome"][("hang",)] == 1
    crowd = tuple(Who(rank=n, index=n) for n in range(MAX_NAMED_MEMBERS + 1))
    (labels,) = values(hanging_snapshot(3, stopped_finding(who=crowd)))["allaboard_finding"]
    assert labels[2] == "several"


def test_a_thousand_ranks_are_one_series() -> None:
    ranks = [rank(n, 5, memory_nbytes=10, waiting=0.5) for n in range(1000)]
    snapshot = picture(2.0, *ranks)
    series = values(snapshot, totals_of(picture(1.0, *ranks), snapshot))
    assert series["allaboard_steps_total"] == {("all",): 5000}
    assert series["allaboard_rank_memory_bytes"] == {("all",): 10_000}
    assert series["allaboard_waiting_seconds_total"][("all", "ranks")] == pytest.approx(500.0)
    assert series["allaboard_rank_series"] == {(): 0}
    assert max(map(len, series.values())) <= MAX_RANK_SERIES
    assert values(picture(2.0, *ranks[:9]))["allaboard_rank_series"] == {(): 1}


def test_labels_are_one_safe_line_and_no_series_comes_twice() -> None:
    evil = 'x"}\n\x1b[31m' + "y" * 500
    host = HostState(host=evil, resources=(ResourceState(name=evil, used=1.0),))
    ranks = (rank(-1, 4, name=evil, cpu=1.0), rank(-1, 3, name=evil, pid=7, cpu=2.0))
    snapshot = msgspec.structs.replace(picture(1.0, *ranks), hosts=(host,))
    series = values(snapshot)
    ((label,),) = series["allaboard_rank_cpu_cores"]
    assert label.isprintable() and len(label) <= MAX_LABEL_LENGTH
    assert series["allaboard_rank_cpu_cores"][(label,)] == 2.0
    assert series["allaboard_steps_total"] == {(label,): 7}
    assert "allaboard_resource_limit_bytes" not in series  # 0 is no limit


def test_restarts_are_counted() -> None:
    restarts = (RestartState(what="round 2", reason="r"), RestartState(what="ps-0", reason="r"))
    assert values(picture(1.0, restarts=restarts))["allaboard_restarts_total"] == {(): 2}


def _named_metrics(text: str) -> set[str]:
    return set(re.findall(r"\ballaboard_[a-z_]+", text))


def test_dashboard_alerts_and_page_name_what_there_is() -> None:
    names = {m.name for m in METRICS} | {STEP_SECONDS[0]}
    bucket = f"{STEP_SECONDS[0]}_bucket"
    dashboard = (ROOT / "contrib/grafana/allaboard.json").read_text()
    alerts = (ROOT / "contrib/prometheus/alerts.yml").read_text()
    assert json.loads(dashboard)["panels"]
    assert _named_metrics(dashboard) | _named_metrics(alerts) <= names | {bucket}
    page = (ROOT / "docs/reference/metrics.md").read_text()
    rows = re.findall(r"^\| `(allaboard_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", page, re.M)
    expected = [
        (m.name, m.kind, ", ".join(f"`{name}`" for name in m.labels), m.help) for m in METRICS
    ]
    expected.append((STEP_SECONDS[0], "histogram", "", STEP_SECONDS[1]))
    assert sorted((n, k, labels.strip(), text) for n, k, labels, text in rows) == sorted(expected)
    labels = {name for m in METRICS for name in m.labels} | {"run", "le"}
    used = re.findall(r"by \(([^)]*)\)", dashboard + alerts)
    assert {name.strip() for names in used for name in names.split(",")} <= labels


def test_what_is_measured_of_hosts_and_gpus() -> None:
    gpu = GpuState(
        index=1, temperature_c=88, foreign_nbytes=5, slowed_by="power brake", ecc_errors=2,
        clock_mhz=1410, pcie_replays=3, nvlink_errors=7,
    )  # fmt: skip
    load = LoadState(
        io_pressure=0.4, steal=0.1, retransmitted=0.02, throttled=0.5, received_per_s=9.0
    )
    store = StoreState(name="/data", latency_s=0.045)
    measured = HostState(host="a", gpus=(gpu,), load=load, stores=(store,))
    snapshot = msgspec.structs.replace(picture(1.0, rank(0)), hosts=(measured, HostState(host="b")))
    found = values(snapshot)
    assert found["allaboard_gpu_temperature_celsius"] == {("a", "1"): 88}
    assert found["allaboard_gpu_slowed_down"] == {("a", "1"): 1}
    assert found["allaboard_gpu_foreign_memory_bytes"] == {("a", "1"): 5}
    assert found["allaboard_gpu_uncorrected_errors"] == {("a", "1"): 2}
    assert found["allaboard_host_stalled_ratio"] == {
        ("a", "cpu"): 0,
        ("a", "memory"): 0,
        ("a", "io"): 0.4,
    }
    assert found["allaboard_gpu_clock_hertz"] == {("a", "1"): 1.41e9}
    assert found["allaboard_gpu_pcie_replays"] == {("a", "1"): 3}
    assert found["allaboard_gpu_nvlink_errors"] == {("a", "1"): 7}
    assert found["allaboard_host_throttled_ratio"] == {("a",): 0.5}
    assert found["allaboard_host_received_bytes_per_second"] == {("a",): 9.0}
    assert found["allaboard_host_steal_ratio"] == {("a",): 0.1}
    assert found["allaboard_store_latency_seconds"] == {("a", "/data"): 0.045}


def test_what_is_measured_of_ranks_is_absent_where_it_is_not_known() -> None:
    ranks = (rank(0, threads=9, open_files=40, open_files_limit=1024), rank(1, queued=0.25))
    found = values(picture(1.0, *ranks))
    assert found["allaboard_rank_threads"] == {("0",): 9}
    assert found["allaboard_rank_open_files"] == {("0",): 40}
    assert found["allaboard_rank_open_files_limit"] == {("0",): 1024}
    assert found["allaboard_rank_queued_ratio"] == {("0",): 0, ("1",): 0.25}
    assert "allaboard_rank_received_bytes_per_second" not in found
    crowd = [rank(n, queued=0.5, threads=2) for n in range(MAX_RANK_SERIES + 1)]
    found = values(picture(1.0, *crowd))
    assert found["allaboard_rank_threads"] == {("all",): 2 * len(crowd)}
    assert "allaboard_rank_queued_ratio" not in found  # a sum of shares is none


def test_memory_that_frameworks_count_is_reported_where_it_is_known() -> None:
    memory = DeviceMemory(used_nbytes=5, reserved_nbytes=9, limit_nbytes=20, retries=0)
    ranks = (
        rank(0, device_memory=memory),
        rank(1, device_memory=DeviceMemory(used_nbytes=1)),
        rank(2),
    )
    snapshot = picture(1.0, *ranks)
    families = {
        m.name: list(m.read(JobPicture(snapshot, totals_of(snapshot))))
        for m in METRICS
        if m.name.startswith("allaboard_rank_gpu_")
    }
    assert families["allaboard_rank_gpu_used_bytes"] == [(("0",), 5), (("1",), 1)]
    assert families["allaboard_rank_gpu_reserved_bytes"] == [(("0",), 9)]
    assert families["allaboard_rank_gpu_allocation_retries"] == [(("0",), 0)]
    assert families["allaboard_rank_gpu_peak_bytes"] == []
    many = picture(1.0, *(rank(n, device_memory=memory) for n in range(MAX_RANK_SERIES + 1)))
    used = next(m for m in METRICS if m.name == "allaboard_rank_gpu_used_bytes")
    assert list(used.read(JobPicture(many, totals_of(many)))) == [(("all",), 5 * len(many.ranks))]
