"""A call that differs since one rank has left its loop: the finding says which loop."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.collectives.unsampled_calls import members_to_sample_at_calls
from allaboard.facts import EnclosingLoop, Exit, Frame, JobView, Op
from allaboard.facts.samples import (
    REDUCE,
    member_with_calls,
    sample_job,
    sample_signature,
    sample_stack,
    stalled_job,
)
from allaboard.rules.hang009_other_order import check

LOOP = EnclosingLoop(Frame("/home/u/train.py", 40, "train", "for batch in loader:"), 44)


def job(line_of_stack: int) -> JobView:
    in_loop = msgspec.structs.replace(
        sample_stack(REDUCE, Frame("/home/u/train.py", line_of_stack, "train")), loops=(LOOP,)
    )
    behind = sample_stack(REDUCE, Frame("/home/u/train.py", 51, "train", "dist.barrier()"))
    step, barrier = sample_signature(line=41), sample_signature("barrier", line=51, dtype="")
    return stalled_job(
        *(
            member_with_calls(
                rank,
                barrier if rank == 2 else step,
                op=Op("barrier" if rank == 2 else "all_reduce", 1, 90.0, "0", 1),
                stack=behind if rank == 2 else in_loop,
            )
            for rank in range(3)
        )
    )


@pytest.mark.parametrize(("line", "is_shown"), [(41, True), (43, False)])
def test_the_loop_is_named_if_the_stacks_are_at_these_calls(line: int, is_shown: bool) -> None:
    (claim,) = check(job(line))
    left = "rank 2 has left the loop at train.py:40 (for batch in loader), which rank 0 is still in"
    assert (left in [e.observed for e in claim.evidence]) is is_shown


def parted(since_s: float, sampled: bool, number: int = 1, alive: bool = True) -> JobView:
    """So long ago rank 2 came to a barrier and the others to an all_reduce."""
    members = []
    for member in job(41).members:
        (state,) = member.groups
        state = msgspec.structs.replace(state, since=100.0 - since_s, number=number)
        assert member.stack is not None
        taken_at = 100.0 if sampled else 100.0 - since_s - 0.1
        stack = msgspec.structs.replace(member.stack, taken_at=taken_at)
        members.append(
            msgspec.structs.replace(
                member,
                groups=(state,),
                stack=stack,
                exit=None if alive or member.who.rank else Exit(code=0, ended_at=100.0),
            )
        )
    return sample_job(*members, now=100.0, progress_at=100.0 - since_s)


def test_the_difference_is_told_once_the_stacks_show_the_loop() -> None:
    just_parted = parted(0.4, sampled=False)
    assert list(check(just_parted)) == []
    assert [m.who.rank for m in members_to_sample_at_calls(just_parted)] == [0, 1, 2]
    seen = parted(0.6, sampled=True)
    (claim,) = check(seen)
    assert "rank 2 has left the loop" in claim.evidence[-1].observed
    assert members_to_sample_at_calls(seen) == ()


@pytest.mark.parametrize(
    "view",
    [
        parted(3.1, sampled=False),  # no stack can be read
        parted(0.4, sampled=False, number=2),  # they have gone on since
        parted(0.4, sampled=False, alive=False),  # one is gone
    ],
)
def test_a_difference_without_stacks_is_told_without_them(view: JobView) -> None:
    assert len(list(check(view))) == 1
    assert members_to_sample_at_calls(view) == ()
