"""Ranks of one job that state different meeting places by mistake: a wrong port in one shell. Pure.

Such a rank is connected to no other, so it looks like a job of its own. It belongs to the job that runs the
same command and lacks just this rank, where both can only mean ranks of this host.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from allaboard.configuration import resolve
from allaboard.diagnosis.live.training_processes import TrainingProcess
from allaboard.facts import ClusterSpec
from allaboard.facts.address import is_this_host_alone

_NUMBER = re.compile(r"\d{1,6}$")
"""The end of an argument in which ranks may differ: a rank or a port."""


class _Part(NamedTuple):
    """Processes that belong together, but do not have all ranks of their job."""

    kind: tuple[object, ...]
    """What all ranks of one job have in common: network, command up to numbers, world size."""
    ranks: frozenset[int]
    """The ranks that they state."""
    processes: list[TrainingProcess]
    """All of them."""


def join_strayed_ranks(
    jobs: Sequence[list[TrainingProcess]], arguments: Mapping[int, Mapping[str, str]]
) -> list[list[TrainingProcess]]:
    """Return the jobs, those that can only be parts of one joined into one.

    ``arguments``: what the arguments of each process state, by pid. Parts are joined if no rank is in two of
    them; otherwise it is unknown which of them belong together.
    """
    parts_by_kind: dict[tuple[object, ...], list[_Part]] = defaultdict(list)
    for job in jobs:
        part = _incomplete_part(job, arguments)
        if part is not None:
            parts_by_kind[part.kind].append(part)
    joined: list[list[TrainingProcess]] = []
    in_parts: set[int] = set()
    for parts in parts_by_kind.values():
        if len(parts) > 1 and sum(len(p.ranks) for p in parts) == len(
            frozenset().union(*(p.ranks for p in parts))
        ):
            members = sorted((q for p in parts for q in p.processes), key=lambda q: q.pid)
            joined.append(members)
            in_parts |= {q.pid for q in members}
    return [job for job in jobs if not in_parts & {p.pid for p in job}] + joined


def _incomplete_part(
    job: list[TrainingProcess], arguments: Mapping[int, Mapping[str, str]]
) -> _Part | None:
    """Return the job as a part of a larger one; None unless all of its ranks must be on this host."""
    specs = [(p, resolve({**p.variables, **arguments.get(p.pid, {})})) for p in job]
    ranked = [(p, s) for p, s in specs if s.rank >= 0]
    kinds = {(p.network, _shape(p.command), s.world_size) for p, s in ranked}
    if len(kinds) != 1 or not all(_is_local(s) for _, s in ranked):
        return None
    ((_, _, size),) = kinds
    ranks = frozenset(s.rank for _, s in ranked)
    if not len(ranks) < size:
        return None
    return _Part(next(iter(kinds)), ranks, job)


def _is_local(spec: ClusterSpec) -> bool:
    """Return True if the rank meets the others on a loopback address, as do all tasks of its cluster."""
    addresses = [a for _, _, a in spec.ranked_tasks]
    if addresses:
        return all(is_this_host_alone(a.text.rpartition(":")[0]) for a in addresses)
    address = spec.meeting_address
    return address is not None and is_this_host_alone(address.host)


def _shape(command: Sequence[str]) -> tuple[str, ...]:
    return tuple(_NUMBER.sub("#", argument) for argument in command)
