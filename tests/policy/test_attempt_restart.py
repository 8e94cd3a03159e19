"""After a round: another one or the end, each with its reason."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.facts import Cause, Outcome, RoundEnd
from allaboard.policy.restart.attempt_restart import (
    MAX_FUTILE_ROUNDS,
    count_futile_rounds,
    count_repeated_steps,
    decide_after_round,
)
from allaboard.policy.restart.restart_policy import (
    MAX_RESTART_DELAY_S,
    NoRestart,
    Restart,
    RestartPolicy,
    restart_delay,
)

POLICY = RestartPolicy(allowed=True, max_restarts=9, backoff=2.0)
KILLED = Cause(who="worker 1", what="was killed by SIGKILL", steps=60)
RAISED = Cause(
    who="worker 1",
    what="raised ValueError at train.py:41",
    error="ValueError",
    place="/home/me/train.py:41",
    steps=60,
)


def ended(number: int = 0, steps: int = 60, first: int | None = None, **more: object) -> RoundEnd:
    """A round that failed because worker 1 was killed."""
    fields: dict[str, object] = {
        "outcome": Outcome.FAILED,
        "reason": "worker 1 failed; ending the others",
        "seconds": 20.0,
        "cause": KILLED,
    }
    return msgspec.convert(
        {"number": number, "steps": steps, "first": first} | fields | more, RoundEnd
    )


def raised(number: int, steps: int, first: int | None = None, line: int = 41) -> RoundEnd:
    cause = msgspec.structs.replace(RAISED, steps=steps, place=f"/home/me/train.py:{line}")
    return ended(number, steps, first, cause=cause)


def test_a_killed_worker_is_started_again_at_once_after_progress() -> None:
    assert decide_after_round([ended()], POLICY) == Restart(
        "worker 1 was killed by SIGKILL; restart 1 of 9", delay=0.0
    )


def test_the_default_starts_nothing_again() -> None:
    assert decide_after_round([ended()], RestartPolicy()) == NoRestart("--on-failure stop")


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (ended(outcome=Outcome.COMPLETED, cause=None, reason="all well"), "all well"),
        (
            ended(outcome=Outcome.INTERRUPTED, cause=None),
            "a job that the user ends is not restarted",
        ),
        (ended(outcome=Outcome.ROLL_CALL_FAILED, cause=None), "no process died"),
        (
            ended(final=True, reason="ps 0 raised ValueError, as the time before"),
            "as the time before",
        ),
        (ended(outcome=Outcome.USAGE, cause=None), "would fail in the same way"),
    ],
)
def test_what_is_never_started_again(last: RoundEnd, why: str) -> None:
    answer = decide_after_round([last], POLICY)
    assert isinstance(answer, NoRestart)
    assert why in answer.reason


def test_a_roll_call_that_failed_of_a_death_is_held_again() -> None:
    assert isinstance(
        decide_after_round([ended(outcome=Outcome.ROLL_CALL_FAILED)], POLICY), Restart
    )


def test_a_hang_is_started_again() -> None:
    hung = ended(outcome=Outcome.HANG, cause=None, reason="worker 1 has been stopped for 30 s")
    answer = decide_after_round([hung], POLICY)
    assert answer == Restart("worker 1 has been stopped for 30 s; restart 1 of 9")


def test_restarts_are_used_up() -> None:
    rounds = [ended(0), ended(1), ended(2)]
    assert isinstance(decide_after_round(rounds, POLICY._replace(max_restarts=3)), Restart)
    assert decide_after_round(rounds, POLICY._replace(max_restarts=2)) == NoRestart(
        "2 restarts used up (--max-restarts 2)"
    )
    assert decide_after_round([ended()], POLICY._replace(max_restarts=0)) == NoRestart(
        "0 restarts used up (--max-restarts 0)"
    )


def test_the_same_exception_at_the_same_line_and_step_ends_it_at_its_second_time() -> None:
    assert isinstance(decide_after_round([raised(0, 60)], POLICY), Restart)
    answer = decide_after_round([raised(0, 60), raised(1, 60)], POLICY)
    assert answer == NoRestart(
        "worker 1 raised ValueError at /home/me/train.py:41 after 60 steps, as in round 0: "
        "it would fail in every round"
    )


def test_another_fault_in_between_does_not_hide_it() -> None:
    rounds = [raised(0, 60), ended(1), raised(2, 60)]
    assert isinstance(decide_after_round(rounds, POLICY), NoRestart)


def test_steps_are_counted_from_the_checkpoint_where_the_framework_numbers_them() -> None:
    rounds = [raised(0, 60, first=1), raised(1, 10, first=51)]
    answer = decide_after_round(rounds, POLICY)
    assert isinstance(answer, NoRestart)
    assert "after step 60, as in round 0" in answer.reason


@pytest.mark.parametrize(
    "second",
    [raised(1, 61), raised(1, 60, line=42), ended(1, cause=KILLED), raised(1, 20, first=51)],
)
def test_near_misses_of_the_same_exception(second: RoundEnd) -> None:
    first = raised(0, 60, first=1 if second.first else None)
    assert isinstance(decide_after_round([first, second], POLICY), Restart)


def test_a_loop_without_progress_stops_itself() -> None:
    rounds = [ended(n, steps=0) for n in range(MAX_FUTILE_ROUNDS)]
    answers = [decide_after_round(rounds[: n + 1], POLICY) for n in range(MAX_FUTILE_ROUNDS)]
    assert [a.delay for a in answers if isinstance(a, Restart)] == [2.0, 4.0]
    assert answers[-1] == NoRestart(
        "a loop without progress: none of the last 3 rounds got to a step"
    )


def test_steps_that_were_all_made_before_are_no_progress() -> None:
    rounds = [
        ended(0, 60, first=1),
        *(ended(n, 10, first=51) for n in range(1, MAX_FUTILE_ROUNDS + 1)),
    ]
    assert count_futile_rounds(rounds) == MAX_FUTILE_ROUNDS
    answer = decide_after_round(rounds, POLICY)
    assert isinstance(answer, NoRestart)
    assert "beyond step 60" in answer.reason


def test_progress_makes_the_count_begin_again() -> None:
    rounds = [ended(0, 0), ended(1, 0), ended(2, 50), ended(3, 0)]
    answer = decide_after_round(rounds, POLICY)
    assert isinstance(answer, Restart)
    assert answer.delay == 2.0


def test_steps_done_again_are_those_after_the_checkpoint() -> None:
    assert count_repeated_steps([ended(0, 60, first=1), ended(1, 40, first=51)]) == 10
    assert count_repeated_steps([ended(0, 60, first=1), ended(1, 40, first=61)]) == 0
    assert count_repeated_steps([ended(0, 60, first=1), ended(1, 0)]) is None
    assert count_repeated_steps([ended(0, 60), ended(1, 40)]) is None


def test_without_numbers_it_is_what_was_begun_after_the_last_checkpoint() -> None:
    saved = ended(0, 260, saved=200)
    assert count_repeated_steps([saved, ended(1, 40, restored=0)]) == 60
    assert count_repeated_steps([saved, ended(1, 40, restored=0), ended(2, 9, restored=0)]) == 40
    assert count_repeated_steps([saved, ended(1, 40)]) is None
    assert count_repeated_steps([saved, ended(1, 40, restored=-1)]) is None
    assert count_repeated_steps([ended(0, 260, restored=0)]) is None


def test_pauses_grow_to_a_bound() -> None:
    assert [restart_delay(1.0, n) for n in range(5)] == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert restart_delay(1.0, 500) == MAX_RESTART_DELAY_S
    assert restart_delay(90.0, 2) == 90.0
    assert restart_delay(0.0, 3) == 0.0
