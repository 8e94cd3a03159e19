"""Tasks of a job with parameter servers: which come back alone, and how often."""

from __future__ import annotations

import pytest

from allaboard.analysis.parameter_servers.task_roles import TF2_CHIEF_CALL
from allaboard.facts import Cause, Member
from allaboard.facts.samples import ps_member, sample_declaration, sample_job, waiting_member
from allaboard.policy.restart.attempt_restart import MAX_FUTILE_ROUNDS
from allaboard.policy.restart.restart_policy import NoRestart, Restart, RestartPolicy
from allaboard.policy.restart.task_restart import (
    TaskEnd,
    can_restart_alone,
    count_futile_ends,
    decide_after_task,
)

POLICY = RestartPolicy(allowed=True, max_restarts=9, backoff=2.0)


def end(done: int, place: str = "", steps: int = 0) -> TaskEnd:
    what = "raised ValueError at train.py:41" if place else "was killed by SIGKILL"
    cause = Cause(who="ps 0", what=what, error="ValueError" * bool(place), place=place, steps=steps)
    return TaskEnd(cause=cause, total_steps=done)


def chief() -> Member:
    told = sample_declaration(0, framework="tensorflow", call=TF2_CHIEF_CALL, job="chief", index=0)
    return ps_member("chief", 0, number=9, declared=told)


@pytest.mark.parametrize("name", ["ps", "worker"])
def test_every_task_of_tensorflow_1_comes_back_alone(name: str) -> None:
    one = ps_member(name, 0)
    assert can_restart_alone(sample_job(one, ps_member("ps", 1), ps_member("worker", 1)), one)


@pytest.mark.parametrize(("name", "alone"), [("ps", False), ("worker", True)])
def test_tensorflow_2_only_replaces_workers(name: str, alone: bool) -> None:
    one = ps_member(name, 0)
    assert can_restart_alone(sample_job(chief(), one, ps_member("ps", 1)), one) is alone
    assert not can_restart_alone(sample_job(chief(), ps_member("ps", 1)), chief())


def test_ranks_of_a_collective_job_do_not_come_back_alone() -> None:
    assert not can_restart_alone(
        sample_job(waiting_member(0), waiting_member(1)), waiting_member(0)
    )


def test_a_killed_server_comes_back_at_once() -> None:
    assert decide_after_task([end(100)], 0, POLICY) == Restart(
        "ps 0 was killed by SIGKILL; restart 1 of 9", delay=0.0
    )
    assert decide_after_task([end(100)], 0, RestartPolicy()) == NoRestart("--on-failure stop")


def test_all_restarts_of_a_run_are_counted_together() -> None:
    answer = decide_after_task([end(100)], 3, POLICY._replace(max_restarts=3))
    assert answer == NoRestart("ps 0 was killed by SIGKILL; 3 restarts used up (--max-restarts 3)")


def test_who_comes_back_and_helps_nobody_stays_away() -> None:
    ends = [end(100)] * MAX_FUTILE_ROUNDS
    answers = [decide_after_task(ends[: n + 1], n, POLICY) for n in range(MAX_FUTILE_ROUNDS)]
    assert [a.delay for a in answers if isinstance(a, Restart)] == [0.0, 2.0]
    assert isinstance(answers[-1], NoRestart)
    assert "it was restarted 2 times, and no member made a further step" in answers[-1].reason


def test_a_step_in_between_is_progress() -> None:
    assert count_futile_ends([end(100), end(100), end(101)]) == 1
    assert count_futile_ends([end(100), end(101), end(101)]) == 2
    assert isinstance(
        decide_after_task([end(n) for n in range(MAX_FUTILE_ROUNDS + 3)], 5, POLICY), Restart
    )


def test_the_same_exception_at_the_same_step_is_not_met_a_third_time() -> None:
    again = [end(100, "train.py:41", 50), end(180, "train.py:41", 50)]
    assert isinstance(decide_after_task(again[:1], 0, POLICY), Restart)
    assert isinstance(decide_after_task(again, 1, POLICY), NoRestart)
    elsewhere = [again[0], end(180, "train.py:42", 50)]
    assert isinstance(decide_after_task(elsewhere, 1, POLICY), Restart)
