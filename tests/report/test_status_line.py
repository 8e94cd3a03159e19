"""The line that says how a job is doing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allaboard.agent.output.progress_display import HEARTBEAT_S, SETTLE_S, ProgressLines
from allaboard.facts import Certainty, Finding, RunPhase, RunState, Severity, Snapshot, Stage
from allaboard.facts.snapshot.host_state import GpuState, HostState, ResourceState
from allaboard.facts.snapshot.rank_state import Activity, RankState
from allaboard.report.status_line import format_elapsed, status_line

GIB = float(1 << 30)
TRAINING: dict[str, Any] = {
    "job": "j", "phase": RunPhase.RUNNING, "world_size": 4, "ready": 4, "step": 1234, "steps_per_s": 8.34,
    "step_s": 0.12, "loss": 0.23149, "elapsed_s": 192.0,
}  # fmt: skip


def snapshot(
    hosts: tuple[HostState, ...] = (), findings: tuple[Finding, ...] = (), **run: Any
) -> Snapshot:
    return Snapshot(taken_at="", run=RunState(**(TRAINING | run)), hosts=hosts, findings=findings)


def finding(severity: Severity = Severity.ERROR, **changes: Any) -> Finding:
    made = Finding(
        rule="HANG005", name="asleep", stage=Stage.RUNTIME, severity=severity, certainty=Certainty.CERTAIN,
        summary="worker 1 is asleep at train.py:41", who=(), evidence=(), fix="", at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_a_job_that_trains() -> None:
    assert status_line(snapshot()) == "step 1,234 · 8.34 steps/s · loss 0.2315 · 4/4 ranks · 3:12"


def test_who_holds_it_up_and_by_how_much() -> None:
    line = status_line(snapshot(slowest="worker 2", step_longest_s=0.1, waiting=0.5, input=0.2))
    assert "slowest worker 2 (+67%)" in line
    assert "50% waiting" in line and "20% on input" in line


def test_steps_that_take_long_are_seconds_a_step() -> None:
    assert "4 s/step" in status_line(snapshot(steps_per_s=0.25))


def test_a_loss_that_is_no_number_is_seen() -> None:
    made = snapshot(loss=None)
    ranks = (RankState(name="worker 0", activity=Activity.TRAINING, loss_text="nan"),)
    assert "loss nan" in status_line(msgspec.structs.replace(made, ranks=ranks))


def test_what_is_nearly_full_is_named_with_its_host() -> None:
    hosts = (
        HostState(host="a", resources=(ResourceState(name="host memory", used=9 * GIB, limit=10 * GIB),)),
        HostState(
            host="b",
            resources=(
                ResourceState(name="host memory", used=1 * GIB, limit=10 * GIB),
                ResourceState(name="open files", used=10),
            ),
            gpus=(GpuState(index=0, memory_nbytes=95, memory_limit_nbytes=100),),
        ),
    )  # fmt: skip
    line = status_line(snapshot(hosts))
    assert "GPU memory 95% full on b · host memory 90% full on a" in line
    assert "open files" not in line


def test_a_hang_says_who_and_where_and_what_will_be_done() -> None:
    findings = (finding(Severity.INFO, summary="a remark"), finding())
    made = snapshot(findings=findings, phase=RunPhase.STALLED, silent_s=30.4)
    assert (
        status_line(made, countdown="ends in 4:30")
        == "hanging for 30 s: worker 1 is asleep at train.py:41 (HANG005) · ends in 4:30 · 3:12"
    )


@pytest.mark.parametrize(
    ("severity", "older"),
    [
        (Severity.WARNING, "no progress for 9 s: looking for the cause"),
        (Severity.ERROR, "no progress for 9 s · worker 1 is asleep at train.py:41 (HANG005)"),
    ],
)
def test_what_the_job_has_outlived_is_no_cause_of_a_standstill(
    severity: Severity, older: str
) -> None:
    found = (finding(severity, at="2026-01-01T10:00:20.000Z"),)
    for silent_s, begins in ((30.0, "hanging for 30 s: worker 1"), (9.0, older)):
        made = snapshot(findings=found, phase=RunPhase.STALLED, silent_s=silent_s)
        made = msgspec.structs.replace(made, taken_at="2026-01-01T10:00:45.000Z")
        assert status_line(made).startswith(begins)


def test_a_hang_without_a_cause_says_what_is_known() -> None:
    made = snapshot(phase=RunPhase.STALLED, silent_s=9.0, findings=(finding(over="2026-01-01"),))
    assert status_line(made).startswith("no progress for 9 s: looking for the cause")
    made = snapshot(phase=RunPhase.STALLED, silent_s=9.0, status="2 workers compile for 9 s")
    assert status_line(made).startswith("2 workers compile for 9 s")


def test_findings_are_counted_while_they_hold() -> None:
    findings = (finding(), finding(Severity.WARNING), finding(Severity.WARNING), finding(over="x"))
    assert "1 error, 2 warnings" in status_line(snapshot(findings=findings))


def test_a_start_says_who_is_missing() -> None:
    made = snapshot(phase=RunPhase.STARTING, step=0, ready=2, status="worker 3 has not joined")
    assert status_line(made) == "worker 3 has not joined"
    made = snapshot(phase=RunPhase.STARTING, step=0, ready=2)
    assert status_line(made) == "starting: 2 of 4 ranks have joined · 3:12"
    made = snapshot(step=0, ready=2)
    assert status_line(made) == "2 of 4 ranks run, no step was seen · 3:12"
    assert "no step yet" in status_line(snapshot(step=0))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_a_narrow_terminal_gets_what_counts(width: int) -> None:
    made = snapshot(slowest="worker 2", step_longest_s=0.2, waiting=0.3, findings=(finding(),))
    line = status_line(made, width)
    assert len(line) <= width
    assert line.startswith("step 1,234")
    assert ("3:12" in line) == (width >= 40)


def test_foreign_text_cannot_drive_the_terminal() -> None:
    made = snapshot(phase=RunPhase.STALLED, findings=(finding(summary="\x1b[2Jgone\n\u202e"),))
    assert status_line(made).isprintable()


def test_durations() -> None:
    assert [format_elapsed(s) for s in (0.4, 7, 750, 3753, 360000)] == [
        "0:00", "0:07", "12:30", "1:02:33", "100:00:00",
    ]  # fmt: skip


def test_lines_come_with_the_first_step_with_changes_and_once_a_minute() -> None:
    lines = ProgressLines(0.0)
    starting = snapshot(phase=RunPhase.STARTING, step=0, ready=0)
    assert not lines.next_line(1.0, starting)
    training = snapshot(step=1)
    assert not lines.next_line(5.0, training)
    assert lines.next_line(5.0 + SETTLE_S, training).startswith("step 1")
    assert not lines.next_line(30.0, snapshot(step=90))
    assert lines.next_line(7.0 + HEARTBEAT_S, snapshot(step=200)).startswith("step 200")
    stalled = snapshot(phase=RunPhase.STALLED, silent_s=4.0)
    assert not lines.next_line(70.0, stalled)
    assert lines.next_line(72.5, stalled).startswith("no progress")
    assert not lines.next_line(200.0, snapshot(phase=RunPhase.ENDED))


def test_a_start_that_takes_long_has_its_line_each_minute() -> None:
    lines = ProgressLines(0.0)
    starting = snapshot(phase=RunPhase.STARTING, step=0, status="worker 3 has not joined")
    spoken = [now for now in range(200) if lines.next_line(float(now), starting)]
    assert spoken == [60, 120, 180]
