"""Advice on ranks that wait for each other, of which stacks alone are known."""

from __future__ import annotations

import msgspec

from allaboard.facts import Frame
from allaboard.facts.samples import USER, sample_stack, stalled_job, waiting_member
from allaboard.rules import hang006_everybody_waits

C10D = "/v/site-packages/torch/distributed/distributed_c10d.py"
DDP = "/v/site-packages/torch/nn/parallel/distributed.py"


def advice(*frames: Frame) -> str:
    view = stalled_job(
        *(
            waiting_member(rank, op=None, stack=sample_stack(frame, USER))
            for rank, frame in enumerate(frames)
        )
    )
    return next(iter(hang006_everybody_waits.check(view))).fix


def test_the_sides_of_messages_are_named_with_their_lines() -> None:
    text = advice(Frame(C10D, 2700, "send"), Frame(C10D, 2764, "recv"))
    assert "rank 0's send (train.py:41), rank 1's recv (train.py:41)" in text
    assert "look for a collective" in advice(
        Frame(C10D, 2, "all_reduce"), Frame(C10D, 3, "barrier")
    )


def test_a_rank_whose_batches_have_ended_within_join() -> None:
    joined = Frame(DDP, 280, "_match_all_reduce_for_bwd_pass")
    assert "within the Join block" in advice(joined, Frame(C10D, 2, "all_reduce"))
    forward = Frame(DDP, 1500, "_distributed_broadcast_coalesced")
    assert "model.module(...)" in advice(forward, Frame(C10D, 2, "all_reduce"))


GATHERS = Frame(
    "/v/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", 3, "unshard"
)
NORM = Frame("/v/site-packages/torch/distributed/fsdp/_runtime_utils.py", 9, "_reduce_grad")


def test_of_two_collectives_of_a_framework_the_rarer_one_is_looked_at() -> None:
    def advice_of(*stacks: tuple[Frame, int]) -> str:
        members = (
            waiting_member(
                rank, op=None, stack=sample_stack(frame, msgspec.structs.replace(USER, line=line))
            )
            for rank, (frame, line) in enumerate(stacks)
        )
        return next(iter(hang006_everybody_waits.check(stalled_job(*members)))).fix

    for order in ((0, 1, 2), (2, 1, 0)):
        stacks = ((GATHERS, 11), (NORM, 13), (GATHERS, 11))
        assert "/home/u/train.py:13: let all ranks" in advice_of(*(stacks[i] for i in order))
    text = advice_of((GATHERS, 11), (NORM, 13))
    assert text.startswith("compare /home/u/train.py:11 with /home/u/train.py:13: ")
