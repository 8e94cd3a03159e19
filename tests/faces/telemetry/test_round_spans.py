"""The rounds of a run as spans of time."""

from __future__ import annotations

from typing import Any

import msgspec

from allaboard.faces.telemetry.round_spans import RoundSpan, RoundTracker
from allaboard.facts import Snapshot
from allaboard.facts.snapshot.run_state import RestartState
from watched import healthy_snapshot


def at(elapsed_s: float, **run: Any) -> Snapshot:
    snapshot = healthy_snapshot()
    return msgspec.structs.replace(
        snapshot, run=msgspec.structs.replace(snapshot.run, elapsed_s=elapsed_s, **run)
    )


def test_each_round_ends_with_the_next_one_and_the_last_with_the_run() -> None:
    restarts = (RestartState(what="round 1", reason="worker 1 was killed"),)
    course = [
        at(1.0, step_highest=10),
        at(9.0, step_highest=90),
        at(12.0, round=1, step_highest=0, restarts=restarts),
        at(20.0, round=1, step_highest=50, restarts=restarts),
        at(21.0, round=1, step_highest=60, restarts=restarts, outcome="completed"),
        at(22.0, round=1, step_highest=60, restarts=restarts, outcome="completed"),
    ]
    tracker = RoundTracker()
    assert [span for snapshot in course for span in tracker.take_in(snapshot)] == [
        RoundSpan(0, 0.0, 12.0, 90, "worker 1 was killed"),
        RoundSpan(1, 12.0, 21.0, 60, ""),
        RoundSpan(-1, 0.0, 21.0, 60, ""),
    ]


def test_a_run_that_fails_says_why() -> None:
    spans = RoundTracker().take_in(
        at(5.0, outcome="failed", reason="worker 0 failed", step_highest=7)
    )
    assert spans == [
        RoundSpan(0, 0.0, 5.0, 7, "worker 0 failed"),
        RoundSpan(-1, 0.0, 5.0, 7, "worker 0 failed"),
    ]
