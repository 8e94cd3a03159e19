"""Which member of the job a rank of an NCCL communicator is."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.facts import Who
from allaboard.facts.instruments.nccl_state import NcclAnswer, NcclRank, NcclStates

_WORST_FIRST = (NcclAnswer.DEAD, NcclAnswer.SILENT, NcclAnswer.PRESENT)


class LostProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that does not answer NCCL's service."""

    rank: NcclRank
    """What is told of it; its rank only if its communicator is of all ranks."""
    who: Who
    """The member."""
    origin: str
    """Where that stands."""


def world_size(states: NcclStates) -> int:
    """Return the number of ranks of the largest communicator: its ranks are those of the job."""
    return max((c.size for report in states.reports for c in report.communicators), default=0)


def member_of(states: NcclStates, rank: NcclRank, size: int) -> Who:
    """Return the member that a rank of a communicator with ``size`` ranks is.

    It is known by its pid, or by its rank if the communicator is as large as the job; else it is named by its
    process.
    """
    known_members = [m for m in states.members if rank.pid and m.pid == rank.pid]
    if len(known_members) == 1:
        return known_members[0]
    if rank.rank >= 0 and 0 < size == world_size(states):
        return Who(index=rank.rank, rank=rank.rank, host=rank.host, pid=rank.pid)
    if rank.pid:
        return Who(job="process", index=-1, host=rank.host, pid=rank.pid)
    return Who(job="process", index=-1, file=f"rank {rank.rank} of a communicator")


def lost_processes(states: NcclStates) -> tuple[LostProcess, ...]:
    """Return the processes that do not answer, each once, in the worst state of all reports."""
    losses: dict[object, LostProcess] = {}
    for report in states.reports:
        origin = str(report.place)
        ranked = [(rank, c.size) for c in report.communicators for rank in c.ranks]
        for rank, size in [*ranked, *((process, 0) for process in report.processes)]:
            if rank.answer is NcclAnswer.PRESENT:
                continue
            key: object = (rank.host, rank.pid) if rank.pid else (size, rank.rank)
            loss = LostProcess(rank=rank, who=member_of(states, rank, size), origin=origin)
            losses[key] = _merge_losses(losses.get(key), loss)
    # One told by its rank alone, in an old version's words, is mostly one that is told by its pid too.
    with_pid = [loss for loss in losses.values() if loss.rank.pid]
    return tuple(with_pid or losses.values())


def _merge_losses(earlier: LostProcess | None, later: LostProcess) -> LostProcess:
    """Return what both say of one process: the worse answer, and the better name."""
    if earlier is None:
        return later
    worst = min(earlier.rank.answer, later.rank.answer, key=_WORST_FIRST.index)
    named = earlier if earlier.who.rank >= 0 or later.who.rank < 0 else later
    return msgspec.structs.replace(named, rank=msgspec.structs.replace(named.rank, answer=worst))


def unique_members(members: Iterable[Who]) -> tuple[Who, ...]:
    """Return the members, each once, in their order."""
    return tuple(dict.fromkeys(members))
