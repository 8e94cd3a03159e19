"""What PyTorch's allocator says of a GPU whose memory ran out: how much was wanted, and who holds the rest.

The message is that of PyTorch 2.1 and later (CUDACachingAllocator.cpp); recorded with 2.11 on one H200.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.late_pattern import compile_late

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = r"(?P<{0}>[\d.]+) (?P<{0}_unit>bytes|[KMG]iB)"
_REPORT = compile_late(
    rf"Tried to allocate {_SIZE.format('wanted')}\. GPU (?P<gpu>\d+) has a total capacity of "
    rf"{_SIZE.format('capacity')} of which {_SIZE.format('free')} is free\."
)
_HOLDER = compile_late(rf"Process (?P<pid>\d+) has {_SIZE.format('held')} memory in use")
_OWN_SHARE = "this process has "
"""Names the process that raised. In a container PyTorch does not know its own pid on the host: the message
then lists the process itself as one of the others, without these words."""
MIN_HELD_SHARE = 0.05
"""Share of the GPU's memory from which another process counts: a CUDA context alone takes half a gigabyte."""


class GpuMemoryReport(msgspec.Struct, frozen=True):
    """What the message says of the GPU, in bytes."""

    gpu: int
    """Number of the GPU, as the process counts."""
    wanted_nbytes: float
    """What the process wanted to allocate."""
    capacity_nbytes: float
    """All of the GPU's memory."""
    free_nbytes: float
    """What was free."""
    holders: tuple[tuple[int, float], ...]
    """Pid and bytes of each other process, the largest first."""

    @property
    def is_held_by_others(self) -> bool:
        """Return True if it would have fitted without the other processes."""
        held = sum(nbytes for _, nbytes in self.holders)
        is_much = held >= MIN_HELD_SHARE * self.capacity_nbytes
        return is_much and self.wanted_nbytes <= self.free_nbytes + held

    @property
    def is_too_large(self) -> bool:
        """Return True if it would not fit into an empty GPU."""
        return self.wanted_nbytes > self.capacity_nbytes


def read_gpu_memory_report(message: str) -> GpuMemoryReport | None:
    """Return the report that the message has, or None."""
    match = _REPORT.search(message)
    if match is None:
        return None
    holders = [
        (int(m["pid"]), _nbytes(m, "held"))
        for m in (_HOLDER.finditer(message) if _OWN_SHARE in message else ())
    ]
    return GpuMemoryReport(
        gpu=int(match["gpu"]),
        wanted_nbytes=_nbytes(match, "wanted"),
        capacity_nbytes=_nbytes(match, "capacity"),
        free_nbytes=_nbytes(match, "free"),
        holders=tuple(sorted(holders, key=lambda holder: -holder[1])),
    )


def describe_holders(report: GpuMemoryReport) -> str:
    """Return who holds how much of the GPU, as one clause."""
    shown = ", ".join(f"process {pid} {_gib(nbytes)}" for pid, nbytes in report.holders[:4])
    return (
        f"of {_gib(report.capacity_nbytes)} on GPU {report.gpu}, {_gib(report.free_nbytes)} were free and "
        f"{_gib(report.wanted_nbytes)} wanted; others held: {shown}"
    )


def memory_fix(report: GpuMemoryReport | None) -> str:
    """Return what to do about it, or "" if the report does not single out a reason."""
    if report is not None and report.is_too_large:
        return (
            f"the one tensor of {_gib(report.wanted_nbytes)} is larger than the GPU "
            f"({_gib(report.capacity_nbytes)}): look at its shape at the line of the traceback, or shard it"
        )
    if report is not None and report.is_held_by_others:
        pids = ",".join(str(pid) for pid, _ in report.holders[:8])
        return (
            f"ps -o pid,user,etime,args -p {pids}   # on that host (outside of its container): they hold the "
            "memory that was lacking: another rank on the same GPU (LOCAL_RANK, CUDA_VISIBLE_DEVICES), "
            "another job, or a run that did not end"
        )
    return ""


def _nbytes(match: re.Match[str], name: str) -> float:
    return float(match[name]) * _UNITS[match[f"{name}_unit"]]


def _gib(nbytes: float) -> str:
    return f"{nbytes / (1 << 30):.1f} GiB"
