"""What a run shows of its progress while it stands still, and while it is being ended."""

from __future__ import annotations

from typing import cast

import pytest

from agent_fakes import FakeStatus, FakeTerminal
from allaboard.agent.output.progress_display import HEARTBEAT_S, ProgressDisplay
from allaboard.coordinator.job_status import JobStatus
from allaboard.facts import Snapshot
from allaboard.facts.samples import sample_member, stalled_job, waiting_member
from allaboard.policy.end.end_policy import EndPolicy
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


@pytest.mark.parametrize(
    ("policy", "max_restarts", "countdown"),
    [
        (EndPolicy(restarts=True, stopped_after=30.0), 3, "restart in 0:22"),
        (EndPolicy(restarts=True, stopped_after=30.0), 0, "ends in 0:22"),
        (EndPolicy(stop_on_hang=True, hang_after=60.0), 0, "ends in 0:50"),
    ],
)
def test_what_will_be_done_about_a_hang_is_counted_down(
    policy: EndPolicy, max_restarts: int, countdown: str
) -> None:
    terminal, status = FakeTerminal(is_tty=True), FakeStatus()
    stopped = sample_member(1, os_state="T", os_state_since=92.0)
    status.view = lambda now: stalled_job(waiting_member(0), stopped)  # type: ignore[method-assign]
    display = ProgressDisplay(
        terminal, FakeSource(), lambda _: None, 0.0, policy=policy, max_restarts=max_restarts
    )
    display.update(100.0, cast(JobStatus, status))
    assert "worker 1 is stopped (SIGSTOP or Ctrl-Z) (HANG001)" in terminal.status
    assert f" · {countdown} · " in terminal.status
    ProgressDisplay(terminal, FakeSource(), lambda _: None, 0.0).update(
        100.0, cast(JobStatus, status)
    )
    assert " in 0:" not in terminal.status
