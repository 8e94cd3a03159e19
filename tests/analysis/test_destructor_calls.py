"""A collective in a destructor, which runs at another moment on each rank."""

from __future__ import annotations

from allaboard.analysis.collectives.implicit_call import destructor_call_advice
from allaboard.facts import Frame, Member
from allaboard.facts.samples import (
    REDUCE,
    USER,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)
from allaboard.rules.hang006_everybody_waits import check

DROPPED = Frame("/home/u/train.py", 9, "__del__", "dist.barrier()")
BARRIER = Frame(REDUCE.file, 5000, "barrier")


def in_destructor() -> Member:
    return sample_member(1, stack=sample_stack(BARRIER, DROPPED, USER), cpu=0.0)


def test_who_calls_a_collective_in_a_destructor_is_told_to_take_it_out() -> None:
    waiting = (waiting_member(r, op=None) for r in (0, 2))
    (claim,) = check(stalled_job(*waiting, in_destructor()))
    assert [w.rank for w in claim.who] == [1]
    assert claim.fix.startswith("take the collective out of __del__ at /home/u/train.py:9: ")


def test_a_destructor_of_a_library_is_not_the_users() -> None:
    library = Frame("/v/site-packages/torch/distributed/x.py", 9, "__del__")
    member = sample_member(1, stack=sample_stack(BARRIER, library, USER))
    assert destructor_call_advice([member]) == ""
    assert destructor_call_advice([waiting_member(0)]) == ""


def test_who_alone_creates_a_group_is_told_that_all_must() -> None:
    group = Frame(REDUCE.file, 5600, "new_group")
    creating = sample_member(1, stack=sample_stack(group, USER), cpu=0.0)
    waiting = (waiting_member(r, op=None) for r in (0, 2))
    (claim,) = check(stalled_job(*waiting, creating))
    assert claim.fix.startswith("only rank 1 is in new_group: call it on all ranks")
