"""The driver reported an error of a GPU that the job uses (an Xid), while the job runs.

The driver tells NVML of such errors as they happen. Reported are those of the GPU, its links and its driver,
which no change of the program mends, and mistakes in kernels. What only follows from another error or from
the end of a process (Xid 43, 45), and what the GPU has mended itself, is left out.

## Why it matters
The rank on that GPU ends with a CUDA error, or waits for a kernel that never ends; all others wait in a
collective. Neither says that the GPU is at fault, and whether a restart on this host can help.

## What to do
The finding has the first action of the Xid catalogue for the number. After an error of the hardware, take
the host out of the job. `allaboard diagnose` reads the driver's own lines in the
kernel's log (HW001), which have the pid: `dmesg -T | allaboard diagnose -`.

A mistake in a kernel (Xid 13, 31, ...) is reported about ranks that a signal ended, or in a job that stands
still. A rank that raised the error is reported by EXIT002; and of a GPU that other programs use too, the
mistake may be theirs: NVML's event names the GPU alone.

If the driver names no processes, as in a container with process ids of its own, all ranks of the host are
named.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.library_errors import is_device_failure
from allaboard.analysis.resources.gpu_holders import (
    example_gpu,
    find_foreign_holders,
    members_on_gpu,
)
from allaboard.analysis.resources.xid_errors import Origin, explain_xid, rank_as_cause
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Raised, Severity
from allaboard.facts.samples import ended_member, sample_job, sample_member
from allaboard.facts.usage import Gpu, GpuProcess

_SEVERITIES = {
    Origin.HARDWARE: Severity.ERROR,
    Origin.DRIVER: Severity.ERROR,
    Origin.LINK: Severity.WARNING,
    Origin.PROGRAM: Severity.WARNING,
}
"""Of the errors that are reported."""


MAX_SHOWN_PIDS = 4
"""Processes of others that are named."""


def check(view: JobView) -> Iterator[Claim]:
    for gpu in view.gpus:
        if not gpu.xids:
            continue
        cause = min(gpu.xids, key=rank_as_cause)
        members = members_on_gpu(view, gpu, only_alive=False)
        origin = explain_xid(cause).origin
        others = [process for holder, process in find_foreign_holders(view) if holder is gpu]
        if origin is Origin.PROGRAM:
            members = _suspects(view, members, is_shared=bool(others))
        if members and origin in _SEVERITIES:
            yield _claim(gpu, cause, members, tuple(others))


def _suspects(view: JobView, members: tuple[Member, ...], is_shared: bool) -> tuple[Member, ...]:
    """Return the members in whose kernel the mistake may have been: those that a signal ended; none if one
    raised the error, which EXIT002 reports, or while all train. The driver's event names the GPU alone."""
    if any(m.raised is not None and _is_gpu_error(m.raised) for m in members):
        return ()
    ended = tuple(
        m for m in members if m.exit is not None and m.exit.signal is not None and not m.exit.ours
    )
    if ended or is_shared or not view.stalled:
        return ended
    return tuple(m for m in members if m.alive)


def _is_gpu_error(raised: Raised) -> bool:
    """Return True if the exception is the one with which a rank meets an error of its kernel."""
    return is_device_failure(raised) or "device-side assert" in raised.message


def _claim(
    gpu: Gpu, cause: int, members: tuple[Member, ...], others: tuple[GpuProcess, ...]
) -> Claim:
    error = explain_xid(cause)
    numbers = ", ".join(map(str, gpu.xids))
    evidence = [
        Evidence(
            f"Xid {numbers}; {gpu.name}, {gpu.bus_id}, {gpu.uuid}", "NVML, events of the driver"
        )
    ]
    if others and error.origin is Origin.PROGRAM:
        pids = ", ".join(str(process.pid) for process in others[:MAX_SHOWN_PIDS])
        sharers = f"pid {pids}, not of this job, on this GPU too"
        evidence.append(Evidence(f"whose kernel it was: {sharers}", "what this does not prove"))
    if not gpu.processes and len(members) > 1:
        evidence.append(Evidence("which of these ranks uses it", "what this does not prove"))
    return Claim(
        summary=f"GPU {gpu.index} of {gpu.host} {error.meaning} (Xid {cause})",
        who=tuple(m.who for m in members[:8]),
        evidence=tuple(evidence),
        fix=f"on {gpu.host}: {error.fix.replace('{bus}', gpu.bus_id or str(gpu.index))}",
        severity=_SEVERITIES[error.origin],
        certainty=Certainty.LIKELY,
    )


_ILLEGAL = "CUDA error: an illegal memory access was encountered"

RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a GPU has fallen off the bus, and its rank was ended by SIGABRT": (
            sample_job(
                ended_member(0, signal=6),
                sample_member(1),
                gpus=(example_gpu(3, pid=100, xids=(154, 79)), example_gpu(4, pid=101)),
            ),
            "GPU 3 of a has fallen off the bus (Xid 79)",
        ),
        "a kernel of a rank used an address that is not mapped, and NCCL's watchdog aborted it": (
            sample_job(
                ended_member(0, signal=6),
                sample_member(1),
                gpus=(example_gpu(3, pid=100, xids=(31, 43)),),
            ),
            "GPU 3 of a met a page fault: a kernel used an address that is not mapped (Xid 31)",
        ),
        "a GPU in a container, in which the driver names no process": (
            sample_job(
                sample_member(0),
                sample_member(1),
                gpus=(example_gpu(3, pid=100, xids=(119,), processes=()),),
            ),
            "GPU 3 of a has firmware (GSP) that did not answer the driver in time (Xid 119)",
        ),
    },
    silent_on={
        "a rank raised the error of its kernel, which EXIT002 reports": sample_job(
            ended_member(0, raised=("AcceleratorError", _ILLEGAL)),
            gpus=(example_gpu(3, pid=100, xids=(43, 31)),),
        ),
        "a kernel failed on a GPU that another program uses too, and the ranks train on": sample_job(
            sample_member(0),
            gpus=(example_gpu(3, pid=100, others=(GpuProcess(pid=4711),), xids=(31,)),),
        ),
        "a GPU without an Xid": sample_job(sample_member(0), gpus=(example_gpu(3, pid=100),)),
        "the driver dropped the work of a process that had been killed": sample_job(
            ended_member(0, signal=9), gpus=(example_gpu(3, pid=100, xids=(43, 45)),)
        ),
        "the driver replaced a faulty row of a GPU's memory": sample_job(
            sample_member(0), gpus=(example_gpu(3, pid=100, xids=(63,)),)
        ),
        "a GPU with an Xid that only other programs use": sample_job(
            sample_member(0), gpus=(example_gpu(3, pid=4711, xids=(79,)),)
        ),
    },
    unstaged="needs a GPU that fails; recorded on one H200 for Xid 31 and 43, else made from the documents "
    "of NVML",
)
