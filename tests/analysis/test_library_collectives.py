"""Stacks of libraries above PyTorch, with the functions of their own sources: what waits, and in what."""

from __future__ import annotations

import pytest

from allaboard.analysis.stacks.framework_collectives import find_own_collective
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stacks.stack_collectives import find_different_collectives
from allaboard.analysis.stacks.stack_groups import StackGroup
from allaboard.facts import Frame, Stack

LIBRARY = "/v/lib/python3.11/site-packages/"
ALL_REDUCE = Frame(LIBRARY + "torch/distributed/distributed_c10d.py", 2924, "all_reduce")
BARRIER = Frame(LIBRARY + "torch/distributed/distributed_c10d.py", 4800, "barrier")
USER = Frame("/home/u/pretrain.py", 88, "train", "engine.step()")


def library(file: str, function: str) -> Frame:
    return Frame(LIBRARY + file, 1, function)


def name_of(*frames: Frame) -> str:
    own = find_own_collective((*frames, USER))
    return own.name if own is not None else ""


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        pytest.param(
            (
                ALL_REDUCE,
                library("deepspeed/comm/torch.py", "all_reduce"),
                library("deepspeed/comm/comm.py", "all_reduce"),
                library("deepspeed/runtime/zero/stage_1_and_2.py", "gradient_reduction_w_predivide"),
                library("deepspeed/runtime/zero/stage_1_and_2.py", "reduce_ipg_grads"),
            ),
            "ZeRO's reduction of gradients",
            id="DeepSpeed's comm passes on what ZeRO asks for",
        ),
        pytest.param(
            (
                library("deepspeed/runtime/zero/partition_parameters.py", "__exit__"),
            ),
            "ZeRO's gather of parameters",
            id="the end of GatheredParameters broadcasts",
        ),
        pytest.param(
            (
                BARRIER,
                library("deepspeed/comm/torch.py", "barrier"),
                library("deepspeed/comm/comm.py", "barrier"),
                library("deepspeed/runtime/engine.py", "save_checkpoint"),
            ),
            "DeepSpeed's checkpoint",
            id="DeepSpeed's checkpoint has a barrier",
        ),
        pytest.param(
            (
                BARRIER,
                library("deepspeed/comm/torch.py", "barrier"),
                library("deepspeed/comm/comm.py", "barrier"),
            ),
            "",
            id="the user's own barrier through deepspeed.comm",
        ),
        pytest.param(
            (
                BARRIER,
                library("deepspeed/comm/torch.py", "barrier"),
                library("deepspeed/comm/comm.py", "barrier"),
                library("deepspeed/runtime/pipe/engine.py", "_exec_schedule"),
            ),
            "DeepSpeed's collective",
            id="a part of DeepSpeed that has no row",
        ),
        pytest.param(
            (ALL_REDUCE, library("megatron/core/optimizer/clip_grads.py", "get_grad_norm_fp32")),
            "Megatron's collective",
            id="Megatron's norm of the gradients",
        ),
        pytest.param(
            (
                ALL_REDUCE,
                library(
                    "megatron/core/distributed/finalize_model_grads.py",
                    "_allreduce_word_embedding_grads",
                ),
            ),
            "Megatron's collective",
            id="Megatron's tied embeddings",
        ),
    ],
)  # fmt: skip
def test_the_collective_is_that_of_the_library(frames: tuple[Frame, ...], name: str) -> None:
    assert name_of(*frames) == name


def test_an_expert_that_computes_does_not_wait() -> None:
    frames = (
        library("torch/nn/modules/linear.py", "forward"),
        Frame("/home/u/model.py", 9, "forward", "return self.w2(self.w1(x))"),
        library("deepspeed/moe/experts.py", "forward"),
        library("deepspeed/moe/sharded_moe.py", "forward"),
        library("deepspeed/moe/layer.py", "forward"),
        USER,
    )
    assert classify_stack(Stack(frames=frames, taken_at=0.0)) is not Spot.COLLECTIVE


def test_megatron_from_its_source_tree_is_a_library() -> None:
    wait = Frame(
        "/work/Megatron-LM/megatron/core/distributed/param_and_grad_buffer.py",
        1,
        "finish_grad_sync",
    )
    stack = Stack(frames=(wait, USER), taken_at=0.0)
    assert not wait.is_user
    assert classify_stack(stack) is Spot.COLLECTIVE
    assert stack.main_frame == USER


MESSAGE = library("megatron/core/pipeline_parallel/p2p_communication.py", "_communicate")
REDUCTION = library("megatron/core/distributed/param_and_grad_buffer.py", "finish_grad_sync")


@pytest.mark.parametrize(
    ("others", "contradict"),
    [
        pytest.param(MESSAGE, False, id="a message of the pipeline: one peer is waited for"),
        pytest.param(BARRIER, True, id="a barrier"),
    ],
)
def test_ranks_in_different_collectives_contradict(others: Frame, contradict: bool) -> None:
    groups = []
    for rank, frame in enumerate((REDUCTION, others)):
        group = StackGroup((frame, USER))
        group.ranks.append(rank)
        groups.append(group)
    assert (find_different_collectives(groups) is not None) is contradict
