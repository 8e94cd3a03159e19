"""Which processes have to share cores, and how many they have: those whose sets of cores overlap
(sched_getaffinity(2)), within what their control groups leave them. Processes that were bound to cores of
their own (taskset, Slurm's --cpus-per-task) share none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from allaboard.facts import Reading
from allaboard.hosts.cpu_quota import tightest_cpu_group

SHARED = "shared cores"
"""Its ``value`` is their number, its ``limit`` the pid of the first of those who share them: it says who
belongs together, and is no limit."""


class CpuRoom(NamedTuple):
    """The cores that one process may use."""

    cores: frozenset[int]
    """Numbers of the cores."""
    group: Path | None = None
    """The control group that limits the process most; None if none of its groups is limited."""
    quota: float = 0.0
    """Cores that this group may use."""


def read_shared_cores(pids: Iterable[int]) -> Iterator[Reading]:
    """Yield a reading for each process that still runs."""
    rooms = {}
    for pid in pids:
        try:
            cores = frozenset(os.sched_getaffinity(pid))
        except OSError:
            continue
        rooms[pid] = CpuRoom(cores, *(tightest_cpu_group(pid) or (None, 0.0)))
    for pid, (core_count, first_pid) in shared_core_counts(rooms).items():
        yield Reading(SHARED, core_count, first_pid, pid, "sched_getaffinity(2), cpu.max")


def shared_core_counts(rooms: Mapping[int, CpuRoom]) -> dict[int, tuple[float, int]]:
    """Return for each process how many cores it shares, with itself alone or with others, and the
    lowest pid among those who share them."""
    sets: list[tuple[frozenset[int], list[int]]] = []
    for pid in sorted(rooms):
        cores, pids = rooms[pid].cores, [pid]
        apart = []
        for other_cores, whose in sets:
            if other_cores & cores:
                cores, pids = cores | other_cores, whose + pids
            else:
                apart.append((other_cores, whose))
        sets = [*apart, (cores, pids)]
    shares: dict[int, tuple[float, int]] = {}
    for cores, pids in sets:
        core_count = float(len(cores))
        quotas = {room.group: room.quota for pid in pids if (room := rooms[pid]).group is not None}
        if all(rooms[pid].group is not None for pid in pids):
            core_count = min(
                core_count, sum(quotas.values())
            )  # groups of their own have a quota each
        shares |= {pid: (core_count, min(pids)) for pid in pids}
    return shares
