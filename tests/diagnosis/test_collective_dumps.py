"""Dumps of ranks that all wait, each in another collective, as py-spy, faulthandler and the Flight Recorder
write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Certainty
from allaboard.rules.engine.catalogue import load_catalogue

CASES = Path(__file__).parent / "collectives"
DIFFERENT = {
    # case: ranks that are named, words of the summary, words of the advice
    "two_calls": ([0, 1], ("rank 0 is in broadcast at pretrain.py:96", "all_gather at"), "compare"),
    "ddp_buffers": (
        [0],
        ("DDP's broadcast of buffers at pretrain.py:61", "ranks 1-2 are in barrier"),
        "model.module(",
    ),
    "sync_batch_norm": (
        [0, 1],
        ("SyncBatchNorm's exchange of statistics at nets.py:88", "in barrier"),
        "model.eval()",
    ),
    "fsdp2_unshard": (
        [0, 1],
        ("FSDP's gather of parameters at pretrain.py:44", "in barrier"),
        "let all ranks run",
    ),
    "fsdp1_backward": (
        [0, 1],
        ("FSDP's reduction of gradients at train.py:55", "all_gather_object at train.py:81"),
        "let all ranks run",
    ),
    "autograd_function": (
        [0, 1],
        ("all_to_all_single (in backward) at moe.py:12", "all_reduce at moe.py:35"),
        "compare",
    ),
    "zero3_gather": (
        [0],
        ("ZeRO's gather of parameters at pretrain.py:44", "ranks 1-2 are in barrier"),
        "let all ranks run",
    ),
    "horovod_metric": (
        [0, 1],
        ("a Horovod callback's collective (allreduce) at fit.py:40", "Horovod's collective at fit"),
        "only some ranks reach",
    ),
    "accelerate_gather": (
        [0, 1],
        ("accelerate's collective (all_gather_into_tensor) at run_glue.py:501", "(barrier)"),
        "only some ranks reach",
    ),
    "lightning_barrier": (
        [0, 1],
        ("Lightning's collective (barrier) at cb.py:18", "(all_reduce) at fit.py:77"),
        "only some ranks reach",
    ),
    "sharded_optimizer": (
        [0, 1],
        ("ZeRO's broadcast of parameters at pretrain.py:90", "DDP's broadcast of buffers"),
        "let all ranks run",
    ),
}
"""What DUMP004 tells of each case; it is the only finding, and no rank is said to be in its own code."""


@pytest.mark.parametrize("case", DIFFERENT)
def test_ranks_in_different_collectives_are_told(case: str) -> None:
    ranks, words, advice = DIFFERENT[case]
    result = diagnose_paths([CASES / case], load_catalogue())
    (finding,) = result.findings
    assert finding.rule == "DUMP004" and finding.certainty is Certainty.LIKELY
    assert [w.rank for w in finding.who] == ranks
    for word in words:
        assert word in finding.summary
    assert advice in finding.fix
    assert {c.doing for c in result.crowds} <= {"in a collective"}


def test_a_rank_without_a_record_is_the_first_to_look_at() -> None:
    result = diagnose_paths([CASES / "recorder_left_out"], load_catalogue())
    (finding,) = result.findings
    assert finding.rule == "DUMP005" and [w.rank for w in finding.who] == [4]
    assert (
        "rank 4 has left no record, and ranks 0-3 and 5 all stand in collective 6"
        in finding.summary
    )
    assert finding.fix.startswith("look at rank 4 first")


def test_a_rank_without_a_dump_is_the_first_to_look_at() -> None:
    result = diagnose_paths([CASES / "rank_not_dumped"], load_catalogue())
    (finding,) = result.findings
    assert finding.rule == "DUMP006" and [w.rank for w in finding.who] == [3]
    assert finding.summary.startswith(
        "rank 3 was not dumped, and ranks 0-2,4-5 all wait in all_to_all"
    )


@pytest.mark.parametrize(
    "case", sorted(p.name for p in CASES.iterdir() if p.name.startswith("healthy_"))
)
def test_dumps_that_prove_nothing_stay_silent(case: str) -> None:
    assert diagnose_paths([CASES / case], load_catalogue()).findings == ()


ELSEWHERE = {
    # a program's own thread is not autograd's: what it waits for, backward need not wait for
    "elsewhere_other_thread": ("DUMP004", "rank 0 is in backward at pretrain.py:90"),
    # a file of the user's that is called like one of PyTorch's
    "elsewhere_own_file": (
        "DUMP001",
        "rank 0 is somewhere else: in its own code at _functions.py:60",
    ),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_what_only_looks_like_a_collective_is_none(case: str) -> None:
    rule, words = ELSEWHERE[case]
    (finding,) = diagnose_paths([CASES / case], load_catalogue()).findings
    assert finding.rule == rule and words in finding.summary
