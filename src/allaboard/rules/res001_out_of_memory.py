"""A worker was killed because memory ran out, or could not get more memory.

## Why it matters
The kernel's out-of-memory killer sends SIGKILL and writes its reason where few people look. Exit code 137
alone looks like a kill by hand; the counter of the process's control group tells them apart.

## What to do
Ask the scheduler or container for more memory, or use less: smaller batches, fewer DataLoader workers (each
holds a copy of what it touches), no growing lists of losses with their graphs.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.out_of_memory import is_gpu_memory, is_out_of_memory
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Stage
from allaboard.facts.samples import ended, evaluator, job, waiting

_HOST = "give the job more memory, or smaller batches and fewer DataLoader workers"
_GPU = (
    "smaller batches on each rank, activation checkpointing, or sharding (FSDP); nvidia-smi on that host "
    "shows whether another process or rank is on the same GPU"
)


def check(view: JobView) -> Iterator[Claim]:
    for one in order_failures(view).own_failures:
        killed = one.exit is not None and one.exit.oom
        raised = one.raised is not None and is_out_of_memory(one.raised)
        if not killed and not raised:
            continue
        evidence = []
        if killed:
            evidence.append(Evidence("oom_kill rose, the process got SIGKILL", "its control group"))
        if one.raised is not None:
            place = str(one.raised.where) if one.raised.where is not None else "excepthook"
            evidence.append(Evidence(f"{one.raised.type}: {one.raised.message[:200]}", place))
        if one.step:
            evidence.append(Evidence(f"after step {one.step}", "black box"))
        claim = Claim(
            summary=f"{one.who.name} ran out of memory"
            + (" and was killed by the kernel" if killed else ""),
            who=(one.who,),
            evidence=tuple(evidence),
            fix=_GPU if _of_a_gpu(one) else _HOST,
            since=one.raised.at if one.raised is not None else one.exit.at if one.exit else None,
        )
        yield soften_evaluator_claim(view, one, claim)


def _of_a_gpu(one: Member) -> bool:
    return one.raised is not None and is_gpu_memory(one.raised)


_TORCH = (
    "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "400000000000 bytes. Error code 12 (Cannot allocate memory)"
)
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "killed by the kernel": (
            job(waiting(0), ended(1, signal=9, oom=True)),
            "worker 1 ran out of memory and was killed by the kernel",
        ),
        "an evaluator": (
            job(waiting(0), ended(1, signal=9, oom=True, member={"who": evaluator(1)})),
            "evaluator 0 ran out of memory and was killed by the kernel; the training goes on without it",
        ),
        "MemoryError": (
            job(waiting(0), ended(1, raised=("MemoryError", ""))),
            "worker 1 ran out of memory",
        ),
        "PyTorch's allocator": (
            job(waiting(0), ended(1, raised=("RuntimeError", _TORCH))),
            "worker 1 ran out of memory",
        ),
        "TensorFlow's allocator": (
            job(
                waiting(0),
                ended(
                    1, raised=("ResourceExhaustedError", "OOM when allocating tensor with shape[9]")
                ),
            ),
            "worker 1 ran out of memory",
        ),
        "NumPy": (
            job(waiting(0), ended(1, raised=("_ArrayMemoryError", "Unable to allocate 7 TiB"))),
            "worker 1 ran out of memory",
        ),
    },
    silent_on={
        "a message was too large": job(
            waiting(0),
            ended(
                1, raised=("ResourceExhaustedError", "Received message larger than max (5 vs. 4)")
            ),
        ),
        "killed by hand": job(waiting(0), ended(1, signal=9)),
    },
    since="0.1",
    drill=("out-of-memory",),
    relations=Relations(begins_failure=True, replaces_message=True),
)
