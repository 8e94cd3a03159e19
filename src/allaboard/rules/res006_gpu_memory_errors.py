"""A GPU of the job has had memory errors that it could not correct.

allaboard asks the driver (NVML) for the count of uncorrected ECC errors since the driver was loaded, or the
GPU was reset. They may be from before the job; until the reset the damaged memory can be given out again.
GPUs without ECC do not count.

## Why it matters
The program that touches the damaged memory fails with "uncorrectable ECC error encountered" (Xid 48, 94, 95),
on this rank alone, at some later time. The others then wait for it.

## What to do
Save a checkpoint and leave the host. Its administrator can reset the GPU (`nvidia-smi -r -i N`, with nothing
running on it), which takes the damaged memory out of use. If errors come back, the GPU must be replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.resources.gpu_holders import example_gpu, members_on_gpu
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Gpu, JobView, Severity
from allaboard.facts.samples import sample_job, sample_member


def check(view: JobView) -> Iterator[Claim]:
    if view.ending:
        return
    for gpu in view.gpus:
        members = members_on_gpu(view, gpu) if gpu.ecc_errors > 0 else ()
        if members:
            errors = "error" if gpu.ecc_errors == 1 else "errors"
            yield Claim(
                summary=f"GPU {gpu.index} of {gpu.host} has had {gpu.ecc_errors} memory {errors} that it "
                "could not correct",
                who=tuple(m.who for m in members),
                evidence=(Evidence(_describe(gpu), "NVML, since the driver was loaded"),),
                fix=f"on {gpu.host}: nvidia-smi -i {gpu.index} -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER   # "
                "reset it before the next job",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
            )


def _describe(gpu: Gpu) -> str:
    return f"{gpu.ecc_errors} uncorrected ECC errors; {gpu.name}, {gpu.bus_id}, {gpu.uuid}"


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a GPU with two uncorrected memory errors": (
            sample_job(sample_member(0), gpus=(example_gpu(3, pid=100, ecc_errors=2),)),
            "GPU 3 of a has had 2 memory errors that it could not correct",
        )
    },
    silent_on={
        "a GPU without memory errors": sample_job(
            sample_member(0), gpus=(example_gpu(3, pid=100, ecc_errors=0),)
        ),
        "a GPU without ECC": sample_job(
            sample_member(0), gpus=(example_gpu(3, pid=100, ecc_errors=-1),)
        ),
        "a GPU with memory errors that only other programs use": sample_job(
            sample_member(0), gpus=(example_gpu(3, pid=4711, ecc_errors=2),)
        ),
    },
    unstaged="needs a damaged GPU; made from the documents of NVML, and read through a library with its "
    "symbols",
)
