"""Whom a round's end is put down to."""

from __future__ import annotations

from allaboard.facts.samples import ended_member, sample_job
from allaboard.policy.restart.attempt_summary import find_root_cause

LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")


def test_who_left_early_is_the_cause_and_not_who_lost_it() -> None:
    found = find_root_cause(
        sample_job(ended_member(0, ended_at=95.3, raised=LOST), ended_member(1, code=0))
    )
    assert str(found) == "worker 1 left early, with exit code 0"


def test_who_raised_first_is_the_cause_though_another_left_after_it() -> None:
    found = find_root_cause(
        sample_job(
            ended_member(0, ended_at=95.0, raised=("ValueError", "x")),
            ended_member(1, ended_at=96.0, code=0),
        )
    )
    assert found is not None and found.who == "worker 0"
