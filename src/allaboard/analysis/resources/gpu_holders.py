"""Who holds memory on the GPUs: members of the job, or processes of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.facts import Gpu, GpuProcess, JobView, Member


def gpu_memory_by_member(view: JobView) -> dict[tuple[str, int], int]:
    """Return the memory (bytes) that each member and the processes below it hold on GPUs, by host and pid."""
    pids = _member_pids(view)
    memory: dict[tuple[str, int], int] = defaultdict(int)
    for gpu in view.gpus:
        for process in gpu.processes:
            owner = _owner(process, pids[gpu.host])
            if owner is not None:
                memory[gpu.host, owner] += process.memory_nbytes
    return dict(memory)


def find_foreign_holders(
    view: JobView, *, only_used: bool = True
) -> Iterator[tuple[Gpu, GpuProcess]]:
    """Yield the processes that hold memory on a GPU and do not belong to the job; if ``only_used``, only on
    GPUs that a member uses now."""
    pids = _member_pids(view)
    for gpu in view.gpus:
        owners = [(process, _owner(process, pids[gpu.host])) for process in gpu.processes]
        if not only_used or any(owner is not None for _, owner in owners):
            yield from ((gpu, process) for process, owner in owners if owner is None)


def _member_pids(view: JobView) -> dict[str, set[int]]:
    pids: dict[str, set[int]] = defaultdict(set)
    for member in view.members:
        pids[member.who.host].add(member.who.pid)
    return pids


def _owner(process: GpuProcess, pids: set[int]) -> int | None:
    """Return the pid of the member that is this process, or the nearest one above it."""
    return next((pid for pid in (process.pid, *process.ancestors) if pid in pids), None)


def members_on_gpu(view: JobView, gpu: Gpu, *, only_alive: bool = True) -> tuple[Member, ...]:
    """Return the members that hold memory on a GPU, or held it; those of its host if the driver names no
    process, as in a container with process ids of its own."""
    members = view.alive if only_alive else view.members
    on_host = [m for m in members if m.who.host == gpu.host and not m.launcher]
    pids = {m.who.pid for m in on_host}
    if not gpu.processes:
        return tuple(on_host)
    owners = {_owner(process, pids) for process in gpu.processes}
    return tuple(m for m in on_host if m.who.pid in owners)


def example_gpu(
    index: int, pid: int, others: tuple[GpuProcess, ...] = (), **changes: object
) -> Gpu:
    """Return a GPU of host "a" for rules' examples, on which the process ``pid`` holds 20 of 80 GB."""
    own_process = GpuProcess(
        pid=pid, memory_nbytes=20_000_000_000, command="python", ancestors=(1000,)
    )
    gpu = Gpu(
        index=index,
        host="a",
        name="NVIDIA H100 80GB HBM3",
        memory_nbytes=50_000_000_000,
        memory_limit_nbytes=80_000_000_000,
        clock_mhz=1980,
        clock_limit_mhz=1980,
        temperature_c=88,
        processes=(own_process, *others),
    )
    return msgspec.structs.replace(gpu, **changes)
