"""The GPU driver reported an error of a GPU (an Xid).

## Why it matters
The peers of the rank on that GPU see only a lost connection or a collective that does not end, and the
rank itself often only "CUDA error: unspecified launch failure". The driver's number tells whether the
program, the GPU, a link between GPUs or the driver itself is at fault, and so whether restarting helps.

## What to do
The finding has the first action of NVIDIA's Xid catalogue for the number. 13, 31 and 69 are mostly mistakes
in a kernel; 43 and 45 only follow from another error; 48, 63, 64, 92, 94 and 95 are about memory; 74 and 144
to 150 about NVLink; 79 means that the GPU is gone until the host is restarted; 119 and 120 that its firmware
hangs. With the logs of a job that ran with `NCCL_DEBUG=INFO`, in which each rank names its GPU, or with the
output of `nvidia-smi -q -x` and a stack dump of each rank, the finding names the rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.resources.gpu_owners import (
    devices_at,
    find_gpu,
    is_foreign,
    members_of_events,
    name_users,
)
from allaboard.analysis.resources.xid_errors import Origin, explain_xid, rank_as_cause
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Who
from allaboard.facts.instruments.hardware import (
    GpuEvent,
    GpuProcess,
    GpuReading,
    Hardware,
    RankDevice,
)

MAX_SHOWN_EVENTS = 3
"""Lines of the log that are shown for one GPU."""
RECOVERY_ACTION = 154
"""Number of the Xid by which the driver says what the GPU needs."""
_SEVERITIES = {Origin.CONSEQUENCE: Severity.WARNING, Origin.NOTE: Severity.INFO}


def check(hardware: Hardware) -> Iterator[Claim]:
    by_gpu: dict[tuple[str, str], list[GpuEvent]] = {}
    for event in hardware.events:
        # What another program did to a GPU, or on it, is no matter of this job; a broken GPU is.
        is_own = explain_xid(event.number).origin in (Origin.HARDWARE, Origin.DRIVER, Origin.LINK)
        if is_own or not is_foreign(hardware, event):
            by_gpu.setdefault((event.host, event.bus), []).append(event)
    for events in by_gpu.values():
        yield _claim(hardware, events)


def _claim(hardware: Hardware, events: list[GpuEvent]) -> Claim:
    # min() keeps the first of equals: later ones mostly follow from it.
    cause = min(events, key=lambda e: rank_as_cause(e.number))
    error = explain_xid(cause.number)
    members = members_of_events(hardware, [cause]) or members_of_events(hardware, events)
    gpu = find_gpu(hardware, cause.bus, cause.host, cause.place.file)
    shown = list(dict.fromkeys((cause.number, e.number) for e in events if e is not cause))
    evidence = [Evidence(cause.line, str(cause.place))]
    later_events = {e.number: e for e in events if e.number != cause.number}
    evidence += [
        Evidence(e.line, str(e.place)) for e in [*later_events.values()][: MAX_SHOWN_EVENTS - 1]
    ]
    if len(events) > 1 + len(shown):
        evidence.append(Evidence(f"{len(events)} such lines about this GPU", str(cause.place.file)))
    if gpu is not None:
        evidence.append(Evidence(f"it is GPU {gpu.index}, {gpu.model}, {gpu.uuid}", str(gpu.place)))
    if members and not cause.pid:
        evidence += [
            Evidence(d.line, str(d.place))
            for d in devices_at(hardware, cause.bus, cause.host)[:MAX_SHOWN_EVENTS]
            if any(m.rank == d.rank for m in members)
        ]
    if not members:
        evidence.append(
            Evidence("which rank uses this GPU, and when it was", "what this does not prove")
        )
    return Claim(
        summary=f"{_gpu_name(cause, members)} {error.meaning} (Xid {cause.number})",
        who=members,
        evidence=tuple(evidence),
        fix=_fix(events, cause),
        severity=_SEVERITIES.get(error.origin, Severity.ERROR),
        certainty=Certainty.CERTAIN if members and cause.pid else Certainty.LIKELY,
    )


def _gpu_name(event: GpuEvent, members: tuple[Who, ...]) -> str:
    of = f" of {name_users(members)}" if members else ""
    on = f" on {event.host}" if event.host and not members else ""
    return f"the GPU {event.bus}{of}{on}"


def _fix(events: list[GpuEvent], cause: GpuEvent) -> str:
    fix = explain_xid(cause.number).fix.replace("{bus}", cause.bus)
    action_events = [e for e in events if e.number == RECOVERY_ACTION and e.detail]
    action = action_events[-1].detail.rpartition("(")[2].rstrip(") .") if action_events else ""
    return f"the driver asks for: {action}; {fix}" if action and action != "None" else fix


def _event(number: int, detail: str = "", pid: int = 0, bus: str = "0000:3b:00") -> GpuEvent:
    return GpuEvent(
        bus=bus,
        number=number,
        detail=detail,
        pid=pid,
        host="node7",
        line=f"NVRM: Xid (PCI:{bus}): {number}, pid={pid}, {detail}",
        place=Place(file="node7/dmesg.log", line=12),
    )


_RANKS = (
    Who(index=3, rank=3, host="node7", pid=4711),
    Who(index=4, rank=4, host="node7", pid=4712),
)
_SEEN = GpuReading(
    bus="0000:3b:00",
    index=2,
    uuid="GPU-1",
    model="NVIDIA H100",
    host="node7",
    processes=(GpuProcess(pid=4712),),
    place=Place(file="node7/smi.xml"),
)

RULE = Rule(
    reads=Hardware,
    check=check,
    fires_on={
        "the kernel's log names the process of a rank": (
            Hardware(events=(_event(31, "MMU fault", pid=4711),), members=_RANKS),
            "the GPU 0000:3b:00 of worker 3 met a page fault: a kernel used an address that is not mapped "
            "(Xid 31)",
        ),
        "NCCL's log names the GPU of each rank": (
            Hardware(
                events=(_event(79, "GPU has fallen off the bus."),),
                devices=tuple(
                    RankDevice(
                        rank=r, bus=bus, host="node7", place=Place(file="job.log", line=r + 1)
                    )
                    for r, bus in enumerate(("0000:18:00", "0000:3b:00"))
                ),
            ),
            "the GPU 0000:3b:00 of worker 1 has fallen off the bus (Xid 79)",
        ),
        "nvidia-smi shows which rank's process uses the GPU": (
            Hardware(
                events=(_event(45, pid=0), _event(79, "GPU has fallen off the bus.")),
                gpus=(_SEEN,),
                members=_RANKS,
            ),
            "the GPU 0000:3b:00 of worker 4 has fallen off the bus (Xid 79)",
        ),
        "only the kernel's log is known": (
            Hardware(
                events=(_event(119, "Timeout after 6s of waiting for RPC response from GPU0 GSP!"),)
            ),
            "the GPU 0000:3b:00 on node7 has firmware (GSP) that did not answer the driver in time (Xid 119)",
        ),
        "an Xid number that NVIDIA's catalogue lacks": (
            Hardware(events=(_event(4242, "something new"),)),
            "the GPU 0000:3b:00 on node7 reported an error (Xid 4242)",
        ),
    },
    silent_on={
        "a mistake of another program on the job's host": Hardware(
            events=(_event(31, "MMU fault", pid=99),), members=_RANKS
        ),
        "nvidia-smi shows a GPU, and the kernel's log no error": Hardware(
            gpus=(_SEEN,), members=_RANKS
        ),
    },
    unstaged="it needs a GPU that fails; its inputs are from NVIDIA's documents and published logs",
    relations=Relations(below_user_code=True),
)
