"""The three sentences on a run."""

from __future__ import annotations

import msgspec

from allaboard.facts import RestartState, RunPhase
from allaboard.report.what_happened import what_happened
from watched import healthy_snapshot


def test_a_restart_is_no_reason_of_the_end() -> None:
    snapshot = healthy_snapshot()
    restarts = (
        RestartState(what="round 1", reason="worker 0 was killed; restart 1 of 3"),
        RestartState(what="round 2", reason="worker 2 raised ValueError; restart 2 of 3"),
    )
    run = msgspec.structs.replace(
        snapshot.run, phase=RunPhase.ENDED, outcome="completed", restarts=restarts
    )
    course, *_ = what_happened(msgspec.structs.replace(snapshot, run=run))
    assert course.endswith(
        "; meanwhile it was started again 2 times, the last time: worker 2 raised ValueError; "
        "restart 2 of 3."
    )
