"""What a run without a terminal writes of its progress while it is being ended."""

from __future__ import annotations

from typing import cast

from agent_fakes import FakeStatus, FakeTerminal
from allaboard.agent.output.progress_display import HEARTBEAT_S, ProgressDisplay
from allaboard.coordinator.job_status import JobStatus
from allaboard.facts import Snapshot
from watched import hanging_snapshot


class FakeSource:
    def recent_snapshot(self, now: float, status: object) -> Snapshot:
        return hanging_snapshot(3)


def test_what_hung_is_not_written_once_the_job_is_being_ended() -> None:
    lines: list[str] = []
    display = ProgressDisplay(FakeTerminal(), FakeSource(), lines.append, 0.0)
    status = cast(JobStatus, FakeStatus())
    for now in (0.0, HEARTBEAT_S, 2 * HEARTBEAT_S):
        display.update(now, status, countdown="worker 0 is still running; killing it in 9 s")
    assert lines == []
    display.update(3 * HEARTBEAT_S, status)
    assert len(lines) == 1
