"""A worker of several hosts that ended with exit code 0 while the others waited for it."""

from __future__ import annotations

import pytest

from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Certainty, Finding, Outcome, Severity, Stage, Who
from allaboard.protocol.events import (
    CoordinatorChanged,
    FindingReported,
    ProcessExited,
    WorkerLaunched,
)
from allaboard.rules.engine.catalogue import load_catalogue

SAID = "worker 1 exited with code 0 while rank 0 was still training"


@pytest.mark.parametrize(
    ("host", "pid", "joined", "outcome"),
    [
        ("h1", 7, True, Outcome.FAILED),
        ("h2", 7, True, Outcome.COMPLETED),  # another host's worker has the same pid
        ("h1", 8, True, Outcome.COMPLETED),  # a rank that a launcher has started again
        ("h1", 7, False, Outcome.COMPLETED),  # here it is seen how the others ended
    ],
)
def test_its_job_is_not_called_completed(
    host: str, pid: int, joined: bool, outcome: Outcome
) -> None:
    clock = FakeClock()
    settings = JobSettings(launched=1, host="h1", joined=joined, rank=1)
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)
    job.handle(clock.now, CoordinatorChanged(is_local=not joined))
    job.handle(clock.now, WorkerLaunched(worker=0, pid=7, launched_at=clock.now))
    job.handle(clock.now, ProcessExited(pid=7, exited_at=clock.now, code=0))
    found = Finding(
        rule="EXIT004", name="left-early", stage=Stage.EXIT, severity=Severity.ERROR,
        certainty=Certainty.CERTAIN, summary=SAID, evidence=(), fix="",
        who=(Who(index=1, rank=1, host=host, pid=pid),),
    )  # fmt: skip
    job.handle(clock.now, FindingReported(finding=found))
    assert job.status.outcome[0] is outcome
    assert (job.status.outcome[1] == SAID) is (outcome is Outcome.FAILED)
