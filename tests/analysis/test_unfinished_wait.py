"""The wait in which a member ended."""

from __future__ import annotations

from allaboard.analysis.stalls.unfinished_wait import unfinished_wait
from allaboard.facts import Exit, Op
from allaboard.facts.samples import sample_job, sample_member, waiting_member

REDUCE = Op("all_reduce", 41, 60.0)


def test_a_member_that_was_ended_in_a_collective_had_waited_there() -> None:
    ended = waiting_member(0, op=REDUCE, exit=Exit(ended_at=98.0, signal=15, ours=True))
    assert unfinished_wait(sample_job(ended), ended) == 38.0


def test_what_it_waits_while_the_job_is_being_ended_does_not_count() -> None:
    ended = waiting_member(0, op=REDUCE, exit=Exit(ended_at=98.0, signal=9, ours=True))
    assert unfinished_wait(sample_job(ended, ending_since=95.0), ended) == 35.0


def test_an_interrupt_leaves_the_collective_before_the_process_ends() -> None:
    ended = sample_member(0, op=None, ended_op=(REDUCE, 96.0), exit=Exit(ended_at=98.0, code=1))
    assert unfinished_wait(sample_job(ended), ended) == 36.0


def test_who_was_in_its_own_code_or_just_in_a_step_waited_for_nobody() -> None:
    end = Exit(ended_at=98.0, code=0)
    for member in (
        sample_member(0, exit=end),
        waiting_member(0, op=Op("all_reduce", 41, 97.5), exit=end),
        sample_member(0, op=Op("tf.function step", 41, 60.0), cpu=0.9, exit=end),
        sample_member(0, ended_op=(Op("all_reduce", 41, 95.0), 96.0), exit=end),
    ):
        assert unfinished_wait(sample_job(member), member) == 0.0
