"""An instrument reports that a GPU is not healthy.

## Why it matters
A GPU with faulty memory, one that waits for a reset, or one that its hardware slows down makes a job fail,
give wrong numbers, or wait in every step for the rank on it. Frameworks do not say so.

## What to do
Do what the instrument says; take the host out of the job until then (with Slurm: `scontrol update
nodename=HOST state=drain reason=gpu`). `dcgmi diag -r 3` on an idle host tests a GPU thoroughly. Errors that
were counted long ago may have no part in this failure: compare their time, or count again after a reset.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.resources.gpu_owners import members_on_gpu, name_users
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Stage, Who
from allaboard.facts.instruments.hardware import (
    DeviceCheck,
    GpuProcess,
    GpuReading,
    Hardware,
    Trouble,
    Weight,
)

_DRAIN = "take the host out of the job; on it, when idle: dcgmi diag -r 3"


def check(hardware: Hardware) -> Iterator[Claim]:
    for gpu in hardware.gpus:
        # The worst says most; the others are its evidence.
        ordered = sorted(gpu.troubles, key=lambda t: t.weight is not Weight.FAILURE)
        if ordered:
            yield _claim_about_gpu(hardware, gpu, ordered)
    by_device: dict[tuple[str, str, str], list[DeviceCheck]] = {}
    for result in hardware.checks:
        by_device.setdefault((result.tool, result.host, result.entity), []).append(result)
    for results in by_device.values():
        yield _claim_of_dcgm(hardware, results)


def _claim_about_gpu(hardware: Hardware, gpu: GpuReading, troubles: list[Trouble]) -> Claim:
    members = members_on_gpu(hardware, gpu)
    worst = troubles[0]
    device = ", ".join(filter(None, (gpu.model, gpu.uuid)))
    return Claim(
        summary=f"GPU {gpu.index} ({gpu.bus}){_where(members, gpu.host)} is not healthy: {worst.text}",
        who=members,
        evidence=(
            *(Evidence(t.text, str(gpu.place)) for t in troubles[:4]),
            *((Evidence(device, str(gpu.place)),) if device else ()),
        ),
        fix=worst.fix.replace("{bus}", gpu.bus) or _DRAIN,
        severity=_severity(worst.weight),
        certainty=Certainty.LIKELY,
    )


def _claim_of_dcgm(hardware: Hardware, results: list[DeviceCheck]) -> Claim:
    ordered = sorted(results, key=lambda r: r.trouble.weight is not Weight.FAILURE)
    worst = ordered[0]
    members = _members_of(hardware, worst)
    device = worst.entity or "a device"
    return Claim(
        summary=f"{device}{_where(members, worst.host)} did not pass {worst.tool}: {worst.check}",
        who=members,
        evidence=tuple(Evidence(f"{r.check}: {r.trouble.text}", str(r.place)) for r in ordered[:4]),
        fix=worst.trouble.fix or _DRAIN,
        severity=_severity(worst.trouble.weight),
        certainty=Certainty.LIKELY,
    )


def _members_of(hardware: Hardware, result: DeviceCheck) -> tuple[Who, ...]:
    """Return the members on the GPU that DCGM numbers, if nvidia-smi shows those of one host only."""
    kind, _, number = result.entity.rpartition(" ")
    if kind != "GPU" or len({g.host for g in hardware.gpus}) > 1:
        return ()
    gpu = next((g for g in hardware.gpus if str(g.index) == number), None)
    return members_on_gpu(hardware, gpu) if gpu is not None else ()


def _where(members: tuple[Who, ...], host: str) -> str:
    return f" of {name_users(members)}" if members else (f" of {host}" if host else "")


def _severity(weight: Weight) -> Severity:
    return Severity.ERROR if weight is Weight.FAILURE else Severity.WARNING


_PLACE = Place(file="smi.xml", line=1)


def _gpu(*troubles: Trouble, pid: int = 0) -> GpuReading:
    return GpuReading(
        bus="0000:3b:00",
        index=2,
        uuid="GPU-1",
        model="NVIDIA H100",
        host="node7",
        troubles=troubles,
        processes=(GpuProcess(pid=pid),) if pid else (),
        place=_PLACE,
    )


def _result(check: str, text: str, weight: Weight) -> DeviceCheck:
    trouble = Trouble(text=text, weight=weight)
    return DeviceCheck(
        tool="dcgmi health",
        entity="GPU 2",
        check=check,
        trouble=trouble,
        host="node7",
        place=_PLACE,
    )


_FAILED = Trouble(text="remapping a faulty row of its memory failed", weight=Weight.FAILURE)

RULE = Rule(
    stage=Stage.HOST,
    reads=Hardware,
    check=check,
    fires_on={
        "nvidia-smi reports a GPU with faulty memory": (
            Hardware(gpus=(_gpu(Trouble(text="it is hot"), _FAILED),)),
            "GPU 2 (0000:3b:00) of node7 is not healthy: remapping a faulty row of its memory failed",
        ),
        "nvidia-smi reports a rank's GPU with faulty memory": (
            Hardware(
                gpus=(_gpu(_FAILED, pid=4711),),
                members=(Who(index=3, rank=3, host="node7", pid=4711),),
            ),
            "GPU 2 (0000:3b:00) of worker 3 is not healthy: remapping a faulty row of its memory failed",
        ),
        "DCGM reports an NVLink that is down": (
            Hardware(
                checks=(
                    _result("Thermal system", "it was slowed down", Weight.WARNING),
                    _result("NVLINK system", "link 3 is down", Weight.FAILURE),
                )
            ),
            "GPU 2 of node7 did not pass dcgmi health: NVLINK system",
        ),
    },
    silent_on={"a healthy GPU": Hardware(gpus=(_gpu(pid=4711),))},
    unstaged="it needs a GPU that fails; its inputs are from NVIDIA's documents and source",
    relations=Relations(),
)
