"""One GPU of a job does nothing, and the others are fully busy.

## Why it matters
While a collective waits, NCCL's kernels spin: `nvidia-smi` shows such a GPU at 100 %, with little power. The
rank whose GPU is at 0 % meanwhile is mostly the one that the others wait for: it did not come to the
collective, and loads data, writes a checkpoint, compiles, or is stuck on the CPU.

## What to do
Look at the process of the idle GPU: `allaboard diagnose PID`, `py-spy dump --pid PID`. One table is one
instant: look twice, some seconds apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.analysis.resources.gpu_owners import members_on_gpu
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Stage
from allaboard.facts.instruments.hardware import GpuProcess, GpuReading, Hardware
from allaboard.facts.rank_sets import format_ranks

MIN_BUSY, MAX_IDLE = 95, 1
"""Percent from which a GPU is fully busy, and up to which it is idle."""
MIN_BUSY_GPUS = 2
"""Busy GPUs of a host that are compared with."""
MIN_HELD_MIB = 1024
"""Memory that shows that a job uses a GPU, where the table lists no processes (in a container)."""


def check(hardware: Hardware) -> Iterator[Claim]:
    for host in dict.fromkeys(gpu.host for gpu in hardware.gpus):
        gpus = [g for g in hardware.gpus if g.host == host and _is_in_use(g)]
        busy = [g for g in gpus if g.utilization >= MIN_BUSY]
        idle = [g for g in gpus if 0 <= g.utilization <= MAX_IDLE]
        # Half of them idle is a job that ended, or two jobs.
        if len(busy) >= MIN_BUSY_GPUS and idle and len(idle) < len(busy):
            yield _claim(hardware, idle, busy, host)


def _is_in_use(gpu: GpuReading) -> bool:
    return bool(gpu.processes) or gpu.used_mib >= MIN_HELD_MIB


def _claim(
    hardware: Hardware, idle: Sequence[GpuReading], busy: Sequence[GpuReading], host: str
) -> Claim:
    pids = [p.pid for g in idle for p in g.processes]
    of_pids = f" (pid {', '.join(map(str, pids))})" if pids else ""
    on_host = f" of {host}" if host else ""
    return Claim(
        summary=f"{_name(idle)}{on_host}{of_pids} {'does' if len(idle) == 1 else 'do'} nothing, while "
        f"{_name(busy)} {'is' if len(busy) == 1 else 'are'} fully busy: if those only wait in a collective, "
        "this is who they wait for",
        who=tuple(w for g in idle for w in members_on_gpu(hardware, g)),
        evidence=tuple(
            Evidence(
                f"GPU {g.index}: {g.utilization} % busy, {g.used_mib} MiB in use", str(g.place)
            )
            for g in [*idle[:2], *busy[:2]]
        ),
        fix=f"on that host: allaboard diagnose {' '.join(map(str, pids)) or 'PID'}   # and nvidia-smi "
        "once more: one table is one instant",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _name(gpus: Sequence[GpuReading]) -> str:
    numbers = sorted(g.index for g in gpus)
    return f"GPU{'s' if len(numbers) > 1 else ''} {format_ranks(numbers)}"


_PLACE = Place(file="smi.txt", line=9)


def _gpu(index: int, utilization: int, used_mib: int = 61233) -> GpuReading:
    processes = (GpuProcess(pid=51201 + index),) if used_mib else ()
    return GpuReading(
        bus=f"0000:0{index}:00",
        index=index,
        utilization=utilization,
        used_mib=used_mib,
        processes=processes,
        place=_PLACE,
    )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Hardware,
    check=check,
    fires_on={
        "one of four GPUs is idle": (
            Hardware(gpus=(_gpu(0, 100), _gpu(1, 100), _gpu(2, 0), _gpu(3, 99))),
            "GPU 2 (pid 51203) does nothing, while GPUs 0-1,3 are fully busy: if those only wait in a "
            "collective, this is who they wait for",
        ),
    },
    silent_on={
        "all are busy": Hardware(gpus=tuple(_gpu(n, 98) for n in range(4))),
        "the idle one is not used by a job": Hardware(
            gpus=(_gpu(0, 100), _gpu(1, 100), _gpu(2, 0, used_mib=0))
        ),
        "as many are idle as busy, as with two jobs": Hardware(
            gpus=(_gpu(0, 100), _gpu(1, 100), _gpu(2, 0), _gpu(3, 0))
        ),
        "one is less busy, as where ranks train unevenly": Hardware(
            gpus=(_gpu(0, 100), _gpu(1, 100), _gpu(2, 40))
        ),
    },
    unstaged="it needs several GPUs; the table's form is from users' reports and NVIDIA's documents",
    relations=Relations(),
)
