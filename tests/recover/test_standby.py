"""When a process is to wait for the place of a task that ends."""

from __future__ import annotations

from allaboard.facts.samples import job, task
from allaboard.recover.policy import Restarts
from allaboard.recover.standby import FAILED, is_due

POLICY = Restarts(allowed=True, most=3)
TRAINS = job(task("worker", 0, step=5, step_at=50.0), task("ps", 0))


def test_it_waits_once_somebody_trains() -> None:
    assert is_due(TRAINS, POLICY, used=0, since=0.0, failed=0)
    assert not is_due(
        job(task("worker", 0, step=0), task("ps", 0)), POLICY, used=0, since=0.0, failed=0
    )


def test_the_next_one_comes_when_the_recovery_is_over() -> None:
    assert not is_due(TRAINS, POLICY, used=1, since=60.0, failed=0)
    assert is_due(TRAINS, POLICY, used=1, since=40.0, failed=0)


def test_none_waits_where_nothing_would_be_started_again() -> None:
    assert not is_due(TRAINS, Restarts(), used=0, since=0.0, failed=0)
    assert not is_due(TRAINS, POLICY, used=3, since=0.0, failed=0)
    assert not is_due(TRAINS, POLICY, used=0, since=0.0, failed=FAILED)
