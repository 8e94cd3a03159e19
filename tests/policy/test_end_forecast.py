"""What is counted down for a job that stands still."""

from __future__ import annotations

import pytest

from allaboard.facts.samples import sample_job, sample_member, stalled_job, waiting_member
from allaboard.policy.end.end_forecast import EndForecast, forecast_end
from allaboard.policy.end.end_policy import EndPolicy

RESTARTS = EndPolicy(restarts=True, stopped_after=30.0)
STOPS = EndPolicy(stop_on_hang=True, hang_after=60.0)
STOPPED = sample_member(1, os_state="T", os_state_since=92.0)
ASLEEP = sample_member(1, os_state="S", os_state_since=92.0)
DEBUGGED = sample_member(1, os_state="t", os_state_since=92.0)


def test_a_stopped_worker_is_given_up_after_the_time_that_the_user_gave() -> None:
    view = stalled_job(waiting_member(0), STOPPED)
    assert forecast_end(view, RESTARTS) == EndForecast(22.0, True)


def test_a_hang_of_any_cause_ends_after_the_time_that_the_user_gave() -> None:
    view = stalled_job(waiting_member(0), ASLEEP)
    assert forecast_end(view, STOPS) == EndForecast(50.0, False)


def test_what_happens_first_is_counted_down() -> None:
    view = stalled_job(waiting_member(0), STOPPED)
    both = EndPolicy(restarts=True, stopped_after=30.0, stop_on_hang=True, hang_after=15.0)
    assert forecast_end(view, both) == EndForecast(5.0, False)


@pytest.mark.parametrize(
    ("policy", "member"),
    [
        (EndPolicy(), STOPPED),
        (RESTARTS, ASLEEP),
        (RESTARTS, DEBUGGED),
        (STOPS, DEBUGGED),
        (EndPolicy(restarts=True, only_observes=True), STOPPED),
        (EndPolicy(restarts=True, ends_survivors=False), STOPPED),
    ],
)
def test_where_nothing_is_done_nothing_is_counted_down(policy: EndPolicy, member: object) -> None:
    assert forecast_end(stalled_job(waiting_member(0), member), policy) is None  # type: ignore[arg-type]


def test_a_job_that_moves_has_no_countdown() -> None:
    view = sample_job(sample_member(0, moved_at=99.5), sample_member(1, moved_at=99.5))
    assert forecast_end(view, STOPS) is None
