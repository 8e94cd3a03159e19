"""A process that does not belong to the job holds memory on a GPU that the job uses.

allaboard asks the driver (NVML) every few seconds which processes hold memory on each GPU. Reported is a
process that holds a twentieth of the memory or more, and neither is a rank nor was started by one. If its
parent has ended, it is most likely left over from an earlier run, and the finding is a warning; else only a
note, since GPUs are also shared on purpose. In a container with process ids of its own this cannot be seen.

## Why it matters
The ranks on that GPU lack this memory: they run out of memory although the model fits. If the process
computes, too, the whole job waits for the ranks that share the GPU with it.

## What to do
Look at the process with the command that is shown. If nobody needs it any more, end it: `kill PID`, and `kill
-9 PID` if it stays. Under Slurm or Kubernetes, tell the cluster's administrators: the process outlived its
job.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.resources.gpu_holders import (
    example_gpu,
    find_foreign_holders,
    members_on_gpu,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Gpu, GpuProcess, JobView, Severity
from allaboard.facts.samples import sample_job, sample_member

MIN_HELD_SHARE = 0.05
"""Share of the GPU's memory that it must hold: a CUDA context alone takes half a gigabyte."""


def check(view: JobView) -> Iterator[Claim]:
    if not view.gpus or view.ending:
        return
    for gpu, process in find_foreign_holders(view):
        if process.command and process.memory_nbytes >= MIN_HELD_SHARE * max(
            1, gpu.memory_limit_nbytes
        ):
            yield _claim(view, gpu, process)


def _claim(view: JobView, gpu: Gpu, process: GpuProcess) -> Claim:
    is_orphan = not process.ancestors
    amounts = f"{process.memory_nbytes / 1e9:.1f} of {gpu.memory_limit_nbytes / 1e9:.1f} GB"
    hours = f"{process.age_s / 3600:.1f} h" if process.age_s >= 3600 else f"{process.age_s:.0f} s"
    parent = "its parent has ended" if is_orphan else f"its parent is pid {process.ancestors[0]}"
    return Claim(
        summary=f"{process.command} (pid {process.pid}), which is not of this job, holds {amounts} on GPU "
        f"{gpu.index} of {gpu.host}",
        who=tuple(m.who for m in members_on_gpu(view, gpu, only_alive=False)),
        evidence=(Evidence(f"started {hours} ago; {parent}", "NVML, /proc"),),
        fix=f"on {gpu.host}: ps -o pid,ppid,user,etime,args -p {process.pid}   # kill it if nobody needs it",
        severity=Severity.WARNING if is_orphan else Severity.INFO,
        certainty=Certainty.LIKELY,
    )


def _view(**changes: object) -> JobView:
    process = GpuProcess(pid=4711, memory_nbytes=30_000_000_000, command="python3.11", age_s=7200)
    process = msgspec.structs.replace(process, **changes)
    members = (sample_member(0), sample_member(1))
    return sample_job(*members, gpus=(example_gpu(0, pid=100, others=(process,)),))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a process whose parent has ended, as one left over from an earlier run": (
            _view(),
            "python3.11 (pid 4711), which is not of this job, holds 30.0 of 80.0 GB on GPU 0 of a",
        ),
        "a process of another program, whose parent still runs": (
            _view(ancestors=(4000,)),
            "python3.11 (pid 4711), which is not of this job, holds 30.0 of 80.0 GB on GPU 0 of a",
        ),
    },
    silent_on={
        "a process that a rank has started": _view(ancestors=(4000, 101)),
        "a rank of the job": _view(pid=101),
        "a process that holds only a CUDA context": _view(memory_nbytes=500_000_000),
        "a process of another process namespace, whose command cannot be seen": _view(command=""),
        "a process on a GPU that the job does not use": sample_job(
            sample_member(0), gpus=(example_gpu(0, pid=100), example_gpu(1, pid=4711))
        ),
    },
    passes=True,
    unstaged="needs a GPU; recorded on one H200 beside a process that held 60% of its memory",
)
