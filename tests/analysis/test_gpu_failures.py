"""Failures of jobs that shared one H200, with the facts as they were recorded there."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.facts import Exit, Gpu, GpuProcess, JobView, Member
from allaboard.facts.samples import ended_member, sample_job, sample_member, stalled_job
from allaboard.rules.res001_out_of_memory import RULE as OUT_OF_MEMORY
from allaboard.rules.res005_gpu_held import RULE as HELD
from allaboard.rules.res008_gpu_failed import RULE as FAILED

ASSERT = "CUDA error: device-side assert triggered"
TORCH_OOM = (
    "CUDA out of memory. Tried to allocate 69.90 GiB. GPU 0 has a total capacity of 139.80 GiB of which "
    "52.91 GiB is free. Process 5701 has 84.39 GiB memory in use."
)
DRIVER_OOM = (
    "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs for more "
    "information."
)
HOLDER = GpuProcess(
    pid=5701, memory_nbytes=90_613_743_616, command="python3", ancestors=(716,), age_s=12.0
)


def _gpu(*others: GpuProcess, **changes: object) -> Gpu:
    """The GPU, with the ranks (pids 100 and 101) and processes of others."""
    ranks = tuple(
        GpuProcess(pid=pid, memory_nbytes=1_239_416_832, command="python3") for pid in (100, 101)
    )
    gpu = Gpu(
        index=0, host="a", name="NVIDIA H200", memory_limit_nbytes=150_754_820_096,
        memory_nbytes=93_060_136_960, processes=(*ranks, *others),
    )  # fmt: skip
    return msgspec.structs.replace(gpu, **changes)


NEIGHBOUR = GpuProcess(pid=1414, memory_nbytes=1_200_000_000, command="python3")
"""The rank of another job on this GPU, whose kernel used a bad address: Xid 31. The assertion is Xid 43."""


@pytest.mark.parametrize("xids", [(43,), (43, 31), (31, 43)])
def test_the_errors_of_a_kernel_are_told_once_by_the_rank_that_raised_them(
    xids: tuple[int, ...],
) -> None:
    asserted = ended_member(1, raised=("AcceleratorError", ASSERT))
    view = sample_job(sample_member(0), asserted, gpus=(_gpu(NEIGHBOUR, xids=xids),))
    assert list(FAILED.check(view)) == []


def test_a_neighbours_error_is_not_of_this_job() -> None:
    ranks = (sample_member(0), sample_member(1))
    assert not list(FAILED.check(sample_job(*ranks, gpus=(_gpu(NEIGHBOUR, xids=(31,)),))))
    assert not list(FAILED.check(stalled_job(*ranks, gpus=(_gpu(NEIGHBOUR, xids=(31,)),))))


def test_a_rank_that_a_signal_ended_may_have_had_the_error() -> None:
    view = sample_job(
        sample_member(0), ended_member(1, signal=6), gpus=(_gpu(NEIGHBOUR, xids=(31,)),)
    )
    (claim,) = FAILED.check(view)
    assert [w.rank for w in claim.who] == [1]
    assert "whose kernel it was: pid 1414, not of this job" in str(claim.evidence)


def test_a_job_that_stands_still_with_a_gpu_of_its_own_has_the_error() -> None:
    (claim,) = FAILED.check(
        stalled_job(sample_member(0), sample_member(1), gpus=(_gpu(xids=(31,)),))
    )
    assert [w.rank for w in claim.who] == [0, 1]


def test_what_another_process_holds_is_the_first_to_look_at() -> None:
    view = sample_job(ended_member(0, raised=("OutOfMemoryError", TORCH_OOM)), gpus=(_gpu(HOLDER),))
    (claim,) = OUT_OF_MEMORY.check(view)
    assert claim.summary == "worker 0 ran out of GPU memory"
    assert claim.fix.startswith("on a: ps -o pid,ppid,user,etime,args -p 5701")
    assert "python3 (pid 5701), which is not of this job, holds 90.6 GB" in str(claim.evidence)


def test_a_rank_that_had_allocated_nothing_needs_no_smaller_batches() -> None:
    early = ended_member(0, raised=("AcceleratorError", DRIVER_OOM), member={"step": 0})
    (claim,) = OUT_OF_MEMORY.check(sample_job(early))
    assert "had allocated nothing yet" in claim.fix
    assert "batches" not in claim.fix
    assert "https" not in str(claim.evidence)


def test_the_holder_of_a_gpu_is_told_once_also_when_the_rank_has_ended() -> None:
    def whose(member: Member) -> list[int]:
        view: JobView = sample_job(member, gpus=(_gpu(HOLDER),))
        return [w.rank for claim in HELD.check(view) for w in claim.who]

    alive = sample_member(0)
    assert whose(alive) == [0]
    assert whose(msgspec.structs.replace(alive, exit=Exit(ended_at=99.0, code=1))) == [0]
