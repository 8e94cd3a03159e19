"""A call that differs since one rank has left its loop: the finding says which loop."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.facts import EnclosingLoop, Frame, JobView, Op
from allaboard.facts.samples import (
    REDUCE,
    member_with_calls,
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
