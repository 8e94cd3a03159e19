"""When a process is to wait for the place of a task that ends."""

from __future__ import annotations

from allaboard.facts import Phase
from allaboard.facts.samples import NOW, ps_member, sample_job
from allaboard.policy.restart.restart_policy import RestartPolicy
from allaboard.policy.restart.standby_start import (
    MAX_FAILED_STANDBYS,
    SERVING_SETTLED_S,
    is_standby_due,
)

POLICY = RestartPolicy(allowed=True, max_restarts=3)
TRAINS = sample_job(ps_member("worker", 0, step=5, step_at=50.0), ps_member("ps", 0))


def test_it_waits_once_somebody_trains() -> None:
    assert is_standby_due(TRAINS, POLICY, used=0, since=0.0, failed=0)
    assert not is_standby_due(
        sample_job(ps_member("worker", 0, step=0), ps_member("ps", 0)),
        POLICY,
        used=0,
        since=0.0,
        failed=0,
    )


def test_the_next_one_comes_when_the_recovery_is_over() -> None:
    assert not is_standby_due(TRAINS, POLICY, used=1, since=60.0, failed=0)
    assert is_standby_due(TRAINS, POLICY, used=1, since=40.0, failed=0)


def test_none_waits_where_nothing_would_be_started_again() -> None:
    assert not is_standby_due(TRAINS, RestartPolicy(), used=0, since=0.0, failed=0)
    assert not is_standby_due(TRAINS, POLICY, used=3, since=0.0, failed=0)
    assert not is_standby_due(TRAINS, POLICY, used=0, since=0.0, failed=MAX_FAILED_STANDBYS)


def test_the_host_of_a_server_hears_of_nobody_who_trains() -> None:
    serves = ps_member("ps", 0, phase=Phase.JOINED, phase_since=NOW - SERVING_SETTLED_S)
    assert is_standby_due(sample_job(serves, joined=True), POLICY, used=0, since=0.0, failed=0)
    assert not is_standby_due(sample_job(serves), POLICY, used=0, since=0.0, failed=0)
    fresh = ps_member("ps", 0, phase=Phase.JOINED, phase_since=NOW - 1)
    assert not is_standby_due(sample_job(fresh, joined=True), POLICY, used=0, since=0.0, failed=0)
    comes = ps_member("ps", 0, phase=Phase.IMPORTING, phase_since=NOW - 60)
    assert not is_standby_due(sample_job(comes, joined=True), POLICY, used=0, since=0.0, failed=0)
