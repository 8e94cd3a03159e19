"""A worker was killed because memory ran out, or could not get more memory.

## Why it matters
The kernel's out-of-memory killer sends SIGKILL and writes its reason to a log that few people read. Exit code
137 alone looks like a manual kill; the counter of the process's control group distinguishes the two.

## What to do
Ask the scheduler or container for more memory, or use less: smaller batches, fewer DataLoader workers (each
holds a copy of the data that it touches), no growing lists of losses with their graphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.out_of_memory import (
    is_gpu_memory,
    is_out_of_memory,
    task_out_of_memory,
)
from allaboard.analysis.log_ends.exception_text import without_boilerplate
from allaboard.analysis.member_names import name_members
from allaboard.analysis.resources.gpu_holders import find_foreign_holders
from allaboard.analysis.resources.gpu_memory_report import (
    GpuMemoryReport,
    describe_holders,
    memory_fix,
    read_gpu_memory_report,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Gpu, GpuProcess, JobView, Member, Stage
from allaboard.facts.samples import ended_member, sample_evaluator, sample_job, waiting_member

_HOST_FIX = "give the job more memory, or use smaller batches and fewer DataLoader workers"
_MPS_FIX = (
    "use smaller batches, activation checkpointing, and fewer processes on this machine: on a Mac all "
    "programs share one memory; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts PyTorch's limit, at the risk of "
    "swapping"
)
_LESS = "use smaller batches on each rank, activation checkpointing, or sharding (FSDP)"
_GPU_FIX = (
    f"{_LESS}; nvidia-smi on that host shows whether another process or rank is on the same GPU"
)
_AT_CONTEXT = re.compile(r"^(?:CUDA|HIP) error: out of memory")
"""What the driver itself says, for a context or a first allocation; torch's allocator words it otherwise."""
MIN_HELD_SHARE = 0.05
"""Share of a GPU's memory that a process of others must hold to be worth ending."""
_XLA_FIX = (
    "use smaller batches in each process, jax.checkpoint, or shard over more devices; nvidia-smi on "
    "that host shows whether another process is on the same GPU: each process of JAX takes 3/4 of its memory "
    "at once"
)
_XLA_ERRORS = ("XlaRuntimeError", "JaxRuntimeError")

MAX_MESSAGE_CHARS = 240
"""Characters of an exception's message that are shown."""
MAX_HOLDERS = 4
"""Processes of others that are named."""


def check(view: JobView) -> Iterator[Claim]:
    failures = order_failures(view).own_failures
    for member in failures:
        together = _killed_together(member, failures)
        if together[0] is not member:
            continue
        killed = member.exit is not None and member.exit.oom
        raised = member.raised is not None and is_out_of_memory(member.raised)
        if not killed and not raised:
            continue
        evidence = []
        if killed:
            evidence.append(
                Evidence("oom_kill increased, the process got SIGKILL", "its control group")
            )
        if member.raised is not None:
            source = str(member.raised.where) if member.raised.where is not None else "excepthook"
            evidence.append(
                Evidence(
                    f"{member.raised.type}: {without_boilerplate(member.raised.message)[:MAX_MESSAGE_CHARS]}",
                    source,
                )
            )
        holders = _other_holders(view, member) if _is_gpu_error(member) else []
        evidence += [_holder_evidence(gpu, process) for gpu, process in holders]
        report = (
            read_gpu_memory_report(member.raised.message) if member.raised is not None else None
        )
        if report is not None and report.is_held_by_others and not holders:
            evidence.append(Evidence(describe_holders(report), "its message"))
        if member.step:
            evidence.append(Evidence(f"after step {member.step}", "black box"))
        who = (
            member.raised is not None and task_out_of_memory(member.raised)
        ) or member.who  # not the client that only asked for it
        if (who.job, who.index) == (member.who.job, member.who.index):
            who = member.who
        several = len(together) > 1
        name = name_members(list(together)) if several else who.name
        was = "were" if several else "was"
        claim = Claim(
            summary=f"{name} ran out of {'GPU memory' if _is_gpu_error(member) else 'memory'}"
            + (f" and {was} killed by the kernel" if killed else ""),
            who=tuple(m.who for m in together) if several else (who,),
            evidence=tuple(evidence),
            fix=_gpu_fix(member, holders, report) if _is_gpu_error(member) else _host_fix(member),
            since=member.raised.raised_at
            if member.raised is not None
            else member.exit.ended_at
            if member.exit
            else None,
        )
        yield soften_evaluator_claim(view, member, claim)


def _killed_together(member: Member, failures: Sequence[Member]) -> Sequence[Member]:
    """Return the members that were killed for want of memory by one line of a log; else the member alone."""
    end = member.exit
    if end is None or not end.oom or not end.last_line or member.raised is not None:
        return (member,)
    return [
        m
        for m in failures
        if m.raised is None and m.exit is not None and m.exit.oom
        if (m.exit.last_line, m.who.host) == (end.last_line, member.who.host)
    ]


def _other_holders(view: JobView, member: Member) -> list[tuple[Gpu, GpuProcess]]:
    """Return the processes that hold memory on the GPUs of its host and are not of the job, the largest
    first."""
    holders = [
        (gpu, process)
        for gpu, process in find_foreign_holders(view, only_used=False)
        if gpu.host == member.who.host and process.command and process.memory_nbytes
    ]
    return sorted(holders, key=lambda holder: -holder[1].memory_nbytes)[:MAX_HOLDERS]


def _holder_evidence(gpu: Gpu, process: GpuProcess) -> Evidence:
    return Evidence(
        f"{process.command} (pid {process.pid}), which is not of this job, holds "
        f"{process.memory_nbytes / 1e9:.1f} GB on GPU {gpu.index}",
        "NVML",
    )


def _gpu_fix(
    member: Member, holders: list[tuple[Gpu, GpuProcess]], report: GpuMemoryReport | None
) -> str:
    """Return what to do: end what others hold, look for it if the rank had taken nothing yet, or use less."""
    host = member.who.host
    pids = [
        str(process.pid)
        for gpu, process in holders
        if process.memory_nbytes >= MIN_HELD_SHARE * max(1, gpu.memory_limit_nbytes)
    ]
    if pids:
        return (
            f"on {host}: ps -o pid,ppid,user,etime,args -p {','.join(pids)}   # end it if nobody needs it; "
            f"else {_LESS}"
        )
    if member.raised is not None and _AT_CONTEXT.search(member.raised.message) and not member.step:
        return (
            f"on {host}: nvidia-smi   # who fills the GPU? This rank had allocated nothing yet: an earlier "
            "job's process, other ranks on the same GPU (LOCAL_RANK), or JAX, which takes three quarters "
            "of it (XLA_PYTHON_CLIENT_PREALLOCATE=false)"
        )
    if fix := memory_fix(report):
        return fix
    is_xla = member.raised is not None and member.raised.type.endswith(_XLA_ERRORS)
    return _XLA_FIX if is_xla else _GPU_FIX


def _host_fix(member: Member) -> str:
    is_apple = member.raised is not None and "MPS backend" in member.raised.message
    return _MPS_FIX if is_apple else _HOST_FIX


def _is_gpu_error(member: Member) -> bool:
    return member.raised is not None and is_gpu_memory(member.raised)


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
        "the kernel's out-of-memory killer ended a worker": (
            sample_job(waiting_member(0), ended_member(1, signal=9, oom=True)),
            "worker 1 ran out of memory and was killed by the kernel",
        ),
        "the kernel's out-of-memory killer ended an evaluator": (
            sample_job(
                waiting_member(0),
                ended_member(1, signal=9, oom=True, member={"who": sample_evaluator(1)}),
            ),
            "evaluator 0 ran out of memory and was killed by the kernel; the training goes on without it",
        ),
        "a worker raised MemoryError": (
            sample_job(waiting_member(0), ended_member(1, raised=("MemoryError", ""))),
            "worker 1 ran out of memory",
        ),
        "PyTorch could not allocate memory": (
            sample_job(waiting_member(0), ended_member(1, raised=("RuntimeError", _TORCH))),
            "worker 1 ran out of memory",
        ),
        "TensorFlow could not allocate a tensor": (
            sample_job(
                waiting_member(0),
                ended_member(
                    1, raised=("ResourceExhaustedError", "OOM when allocating tensor with shape[9]")
                ),
            ),
            "worker 1 ran out of memory",
        ),
        "TensorFlow could not allocate a tensor on another task": (
            sample_job(
                waiting_member(0),
                ended_member(
                    1,
                    raised=(
                        "ResourceExhaustedError",
                        "OOM when allocating tensor with shape[9] and type float on /job:ps/replica:0/task:2/"
                        "device:CPU:0 by allocator cpu",
                    ),
                ),
            ),
            "ps 2 ran out of memory",
        ),
        "NumPy could not allocate an array": (
            sample_job(
                waiting_member(0),
                ended_member(1, raised=("_ArrayMemoryError", "Unable to allocate 7 TiB")),
            ),
            "worker 1 ran out of memory",
        ),
    },
    silent_on={
        "a message was larger than TensorFlow accepts": sample_job(
            waiting_member(0),
            ended_member(
                1, raised=("ResourceExhaustedError", "Received message larger than max (5 vs. 4)")
            ),
        ),
        "a worker was killed by SIGKILL, without an out-of-memory event": sample_job(
            waiting_member(0), ended_member(1, signal=9)
        ),
    },
    drill=("out-of-memory",),
    relations=Relations(begins_failure=True, replaces_message=True),
)
