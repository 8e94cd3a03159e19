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
kernel's log (HW001): `dmesg -T | allaboard diagnose -`.

If the driver names no processes, as in a container with process ids of its own, all ranks of the host are
named.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.resources.gpu_holders import example_gpu, members_on_gpu
from allaboard.analysis.resources.xid_errors import Origin, explain_xid, rank_as_cause
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Gpu, JobView, Member, Severity, Stage
from allaboard.facts.samples import ended_member, sample_job, sample_member

_SEVERITIES = {
    Origin.HARDWARE: Severity.ERROR,
    Origin.DRIVER: Severity.ERROR,
    Origin.LINK: Severity.WARNING,
    Origin.PROGRAM: Severity.WARNING,
}
"""Of the errors that are reported."""


def check(view: JobView) -> Iterator[Claim]:
    for gpu in view.gpus:
        if not gpu.xids:
            continue
        cause = min(gpu.xids, key=rank_as_cause)
        members = members_on_gpu(view, gpu, only_alive=False)
        if members and explain_xid(cause).origin in _SEVERITIES:
            yield _claim(gpu, cause, members)


def _claim(gpu: Gpu, cause: int, members: tuple[Member, ...]) -> Claim:
    error = explain_xid(cause)
    numbers = ", ".join(map(str, gpu.xids))
    evidence = [
        Evidence(
            f"Xid {numbers}; {gpu.name}, {gpu.bus_id}, {gpu.uuid}", "NVML, events of the driver"
        )
    ]
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


RULE = Rule(
    stage=Stage.RUNTIME,
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
        "a kernel of a rank used an address that is not mapped": (
            sample_job(sample_member(0), gpus=(example_gpu(3, pid=100, xids=(31, 43)),)),
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
    since="0.1",
    unstaged="needs a GPU that fails; made from the documents of NVML, and read through a library with its "
    "symbols",
)
