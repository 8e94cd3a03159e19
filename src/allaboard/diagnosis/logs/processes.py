"""Glimpses of each process, grouped by its rank, else by its pid, else by its file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER
from allaboard.diagnosis.logs.node_local_ranks import node_label
from allaboard.diagnosis.logs.rank_identification import identify_ranks
from allaboard.facts import Glimpse, Stack, Who

UNNAMED_PREFIX = "a process of "
"""Begins the name of a process of which only its log is known."""


class Process(msgspec.Struct, kw_only=True):
    """Everything that was seen of one process."""

    number: int
    """Its rank, or a number from `FIRST_UNRANKED_NUMBER` on."""
    who: Who
    """Its name for people."""
    glimpses: list[Glimpse]
    """What each file shows of it, in order."""
    role: str = ""
    """Its role if it takes no part in the training, "" if it may be a rank."""

    @property
    def stack(self) -> Stack | None:
        """The last stack that was seen."""
        return next((g.stack for g in reversed(self.glimpses) if g.stack is not None), None)

    @property
    def command(self) -> str:
        """Its command line, "" if it is not known."""
        return next((g.command for g in self.glimpses if g.command), "")


def group_by_process(glimpses: Iterable[Glimpse], one_node: bool = True) -> list[Process]:
    """Return all processes, in the order in which they were seen.

    ``one_node``: the job ran on one node, so the rank on a node may be the rank.
    """
    identified = identify_ranks(glimpses, one_node)
    glimpses_by_key: dict[tuple[object, ...], list[Glimpse]] = {}
    for number, glimpse in enumerate(identified):
        glimpses_by_key.setdefault(_process_key(number, glimpse), []).append(glimpse)
    files = Counter(str(key[1]) for key in glimpses_by_key if key[0] == "file")
    names = Counter(PurePosixPath(f).name for f in files)
    processes: list[Process] = []
    for number, (key, process_glimpses) in enumerate(glimpses_by_key.items()):
        rank = process_glimpses[0].rank if key[0] == "rank" else -1
        if key[0] == "task":
            process_name = _task_who(process_glimpses)
        elif rank >= 0:
            process_name = _ranked_who(process_glimpses)
        else:
            process_name = _unranked_who(process_glimpses, files, names)
        role = next((g.role for g in process_glimpses if g.role), "")
        processes.append(
            Process(
                number=rank if rank >= 0 else FIRST_UNRANKED_NUMBER + number,
                who=process_name,
                glimpses=process_glimpses,
                role=role,
            )
        )
    return processes


def known_members(processes: Iterable[Process]) -> tuple[Who, ...]:
    """Return those of the processes that may be ranks and whose pid is known."""
    return tuple(p.who for p in processes if p.who.pid and not p.role)


def _process_key(number: int, glimpse: Glimpse) -> tuple[object, ...]:
    if glimpse.task:
        return ("task", glimpse.task)
    if glimpse.rank >= 0:
        return ("rank", glimpse.rank)
    if glimpse.pid:
        return ("pid", glimpse.host, glimpse.pid)
    if glimpse.guess >= 0:
        return ("file", node_label(glimpse.origin.file), glimpse.host, glimpse.guess)
    return ("file", glimpse.origin.file, glimpse.host, -1 - number)


def _ranked_who(glimpses: Sequence[Glimpse]) -> Who:
    rank = glimpses[0].rank
    return Who(
        index=rank, rank=rank, host=_host(glimpses), pid=next((g.pid for g in glimpses if g.pid), 0)
    )


def _task_who(glimpses: Sequence[Glimpse]) -> Who:
    job, _, index = glimpses[0].task.rpartition(" ")
    pid = next((g.pid for g in glimpses if g.pid), 0)
    return Who(job=job, index=int(index), host=_host(glimpses), pid=pid)


def _unranked_who(
    glimpses: Sequence[Glimpse], files: Mapping[str, int], names: Mapping[str, int]
) -> Who:
    first_glimpse = glimpses[0]
    if first_glimpse.pid:
        return Who(job="process", index=-1, host=_host(glimpses), pid=first_glimpse.pid)
    source = (
        node_label(first_glimpse.origin.file)
        if first_glimpse.guess >= 0
        else first_glimpse.origin.file
    )
    name = PurePosixPath(source).name
    name = source if names[name] > 1 else name
    if first_glimpse.guess >= 0:
        return Who(
            job="process",
            index=-1,
            host=_host(glimpses),
            file=f"local rank {first_glimpse.guess} of {name}",
        )
    file = (
        f"{name}:{first_glimpse.origin.line}"
        if files[first_glimpse.origin.file] > 1 and first_glimpse.origin.line
        else name
    )
    if all(g.stack is None for g in glimpses):
        host = _host(glimpses)
        # Its host is all that tells processes apart where a launcher names hosts.
        file = "" if host else f"{UNNAMED_PREFIX}{file}"
        return Who(job="process", index=-1, host=host, file=file)
    return Who(job="process", index=-1, host=_host(glimpses), file=file)


def _host(glimpses: Sequence[Glimpse]) -> str:
    return next((g.host for g in glimpses if g.host), "")
