"""Exceptions of CUDA and NCCL as one H200 gave them, with PyTorch 2.11 and NCCL 2.28.9."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.log_ends.exception_text import without_boilerplate
from allaboard.facts import Frame, Raised
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    gathering_job,
    sample_job,
    sample_member,
)
from allaboard.rules.exit002_exception import RULE as EXCEPTION
from allaboard.rules.join003_died_before_init import RULE as DIED_BEFORE_INIT

CUDA_ADVICE = (
    "\nSearch for `{code}' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for "
    "more information.\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
    "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile "
    "with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
ASSERT = "CUDA error: device-side assert triggered" + CUDA_ADVICE.format(code="cudaErrorAssert")
ILLEGAL = "CUDA error: an illegal memory access was encountered" + CUDA_ADVICE.format(
    code="cudaErrorIllegalAddress"
)
NCCL = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, invalid usage (run with "
    "NCCL_DEBUG=WARN for details), NCCL version 2.28.9\nncclInvalidUsage: This usually reflects invalid "
    "usage of NCCL library.\nLast error:\n"
)
DUPLICATE = NCCL + "Duplicate GPU detected : rank {} and rank {} both on CUDA device 60"
NO_INTERFACE = NCCL + "Bootstrap : no socket interface found"
TRUNCATED = (
    NCCL
    + "NET/Socket : peer 127.0.0.1<59128> message truncated : receiving 1048576 bytes instead of 65536."
)
NO_STORE = (
    "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by "
    "key '0', but store->get('0') got error: Failed to recv, got 0 bytes. Connection was likely closed. "
    "Did the remote server shutdown or crash?\nException raised from recvBytes at Utils.hpp:682 (most recent "
    "call first):\nframe #0: c10::Error::Error + 0x9d\n. This may "
    "indicate a possible application crash on rank 0"
)
DDP = Frame(
    "/v/site-packages/torch/distributed/utils.py", 286, "_verify_param_shape_across_processes"
)


def test_the_sentences_that_torch_adds_to_each_error_are_left_out() -> None:
    assert without_boilerplate(ASSERT) == "CUDA error: device-side assert triggered"
    assert without_boilerplate(DUPLICATE.format(0, 1)).endswith(
        "NCCL version 2.28.9\nLast error: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"
    )
    assert without_boilerplate(NO_STORE).endswith("Did the remote server shutdown or crash?")
    assert without_boilerplate("boom\nat the second line") == "boom\nat the second line"


@pytest.mark.parametrize(
    ("message", "cause", "step"),
    [
        (ASSERT, "in which an assertion failed", "CUDA_LAUNCH_BLOCKING=1"),
        (ILLEGAL, "an address outside of its memory", "compute-sanitizer"),
    ],
)
def test_an_error_in_a_kernel_is_named_with_how_its_line_is_found(
    message: str, cause: str, step: str
) -> None:
    view = sample_job(ended_member(1, raised=("AcceleratorError", message)))
    (claim,) = EXCEPTION.check(view)
    assert cause in claim.summary
    assert step in claim.fix
    assert "may have begun before the line" in claim.fix
    assert "https" not in claim.evidence[0].observed


def test_two_ranks_on_one_gpu_are_both_named() -> None:
    view = sample_job(
        *(
            ended_member(r, raised=("DistBackendError", DUPLICATE.format(r, 1 - r)), frames=(DDP,))
            for r in (0, 1)
        )
    )
    (claim,) = EXCEPTION.check(view)
    assert claim.summary.startswith("rank 0 and rank 1 use one GPU")
    assert "LOCAL_RANK" in claim.fix
    assert claim.retry is Retry.NEVER


def test_a_rank_without_an_interface_is_the_cause_and_its_peers_are_not() -> None:
    view = sample_job(
        ended_member(0, ended_at=96.0, raised=("DistBackendError", NO_INTERFACE), frames=(DDP,)),
        ended_member(1, ended_at=95.5, raised=("DistBackendError", NO_STORE), frames=(DDP,)),
    )
    (claim,) = EXCEPTION.check(view)
    assert [w.rank for w in claim.who] == [0]
    assert "NCCL_SOCKET_IFNAME" in claim.summary
    assert "rank 1 failed as a consequence" in str(claim.evidence)


def test_a_message_of_another_size_is_still_no_failure_of_the_rank_that_received_it() -> None:
    member = ended_member(0, raised=("DistBackendError", TRUNCATED), frames=(DDP,))
    assert has_lost_peer(member)
    assert not has_lost_peer(ended_member(0, raised=("DistBackendError", NCCL + "an unknown one")))


def test_a_gpu_that_a_rank_does_not_see_is_said_before_init() -> None:
    message = (
        "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?"
        + CUDA_ADVICE.partition("more information.")[2]
    )
    exited = ended_member(
        1,
        raised=("AcceleratorError", message),
        member={"phase": coming_member(1).phase, "declared": None, "round": 0},
    )
    (claim,) = DIED_BEFORE_INIT.check(gathering_job(arrived_member(0), exited))
    assert claim.summary.endswith(": it asked for a GPU that it does not see")
    assert "LAUNCH_BLOCKING" not in str(claim.evidence)


def test_a_generic_error_of_a_library_stays_one() -> None:
    failure = explain_library_error(
        Raised(type="DistBackendError", message=NCCL + "something else", raised_at=0.0)
    )
    assert failure is not None
    assert failure.says == "failed in NCCL: invalid usage"


def test_the_assertion_itself_is_quoted_once_the_process_has_ended() -> None:
    asserted = ended_member(
        1,
        raised=("AcceleratorError", ASSERT),
        last_line="Assertion `srcIndex < srcSelectDimSize` failed in the kernel index (Indexing.cu:1515)",
    )
    (claim,) = EXCEPTION.check(sample_job(sample_member(0), asserted))
    assert "srcIndex < srcSelectDimSize" in claim.evidence[1].observed
    assert asserted.raised is not None
    leaving = msgspec.structs.replace(asserted, exit=None)
    raised_at = asserted.raised.raised_at
    for age_s, count in ((2.0, 0), (5.0, 1)):
        view = sample_job(sample_member(0), leaving, now=raised_at + age_s)
        assert len(list(EXCEPTION.check(view))) == count
