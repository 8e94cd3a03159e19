"""The workers of a host have more threads than cores, and often wait for a core.

This is reported if the ranks that share cores have together more threads (`torch.get_num_threads()`) than
cores, at least one rank has more than one thread, and the ranks' main threads were in the kernel's run queue
for three tenths of the time or more. Ranks share cores if their allowed cores overlap: ranks that are bound
to separate cores (`taskset`, Slurm's `--cpus-per-task`) are checked separately. The quotas of their control
groups count too.

## Why it matters
Threads of one matrix product that cannot run at the same time wait for each other: each rank is slower than
it would be with one thread.

## What to do
Set `OMP_NUM_THREADS` to the number of cores divided by the number of ranks that share them. torchrun and
`allaboard run -n` set it to 1 unless you set it. The same applies to `torch.set_num_threads()` in the script.
Count DataLoader workers too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from allaboard.analysis.member_names import name_members
from allaboard.analysis.resources.host_load import (
    example_busy_host,
    host_load_claim,
    is_whole_job_training,
)
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Use

MIN_QUEUED_SHARE = 0.3
"""Share of its time that a main thread waits for a core."""
MIN_SPAN_S = 10.0
"""Seconds that must have been measured."""


def check(view: JobView) -> Iterator[Claim]:
    if not any("threads" in m.notes and m.notes["threads"] != "1" for m in view.alive):
        return
    if not is_whole_job_training(view):
        return
    waits = {(u.host, u.pid): u for u in view.uses if u.name == "queued" and u.span >= MIN_SPAN_S}
    overloaded: dict[str, list[_CoreSharingGroup]] = defaultdict(list)
    for group in _core_sharing_groups(view):
        queued = [u for m in group.members if (u := waits.get((group.host, m.who.pid))) is not None]
        if max(group.threads) < 2 or not 0 < group.cores < sum(group.threads):
            continue
        if len(queued) == len(group.members) and min(u.rate for u in queued) >= MIN_QUEUED_SHARE:
            overloaded[group.host].append(group)
    for groups in overloaded.values():
        yield _claim(groups, waits)


class _CoreSharingGroup(NamedTuple):
    """Members of a host that share this many cores, and the number of threads of each."""

    host: str
    members: list[Member]
    threads: list[int]
    cores: int


def _core_sharing_groups(view: JobView) -> Iterator[_CoreSharingGroup]:
    """Yield the groups of members that share cores, for members whose cores are known."""
    shared = {(u.host, u.pid): u for u in view.uses if u.name == "shared cores"}
    by_cores: dict[tuple[str, float], list[tuple[Member, Use]]] = defaultdict(list)
    for member in view.alive:
        use = shared.get((member.who.host, member.who.pid))
        if use is not None and not member.launcher:
            by_cores[use.host, use.limit].append((member, use))
    for (host, _), uses in by_cores.items():
        threads = [int(m.notes.get("threads", "0") or 0) for m, _ in uses]
        yield _CoreSharingGroup(
            host, [m for m, _ in uses], threads, math.ceil(max(u.value for _, u in uses))
        )


def _claim(groups: list[_CoreSharingGroup], waits: dict[tuple[str, int], Use]) -> Claim:
    """Report all groups of a host that have too many threads."""
    host = groups[0].host
    members = [m for group in groups for m in group.members]
    threads = [n for group in groups for n in group.threads]
    queued = [waits[host, m.who.pid] for m in members]
    subject, have, wait = f"{len(members)} workers", "have", "wait"
    if len(members) == 1:
        subject, have, wait = name_members(members), "has", "waits"
    each = min(max(1, group.cores // len(group.members)) for group in groups)
    return host_load_claim(
        tuple(members),
        f"{subject} on {host} {have} {sum(threads)} threads for {sum(s.cores for s in groups)} "
        f"cores, and {wait} for a core {min(u.rate for u in queued):.0%} of the time",
        Evidence(
            ", ".join(
                f"rank {m.who.rank} {n} threads, waits {u.rate:.0%}"
                for m, n, u in list(zip(members, threads, queued, strict=True))[:8]
            ),
            "torch.get_num_threads(), /proc/PID/schedstat",
        ),
        f"export OMP_NUM_THREADS={each}   # cores / workers that share them",
    )


def _threaded(*threads: int, cores: int = 4, queued: float = 0.5, apart: bool = False) -> JobView:
    """Return a view of workers that share this many cores, or have so many each (``apart``)."""
    view = example_busy_host("queued", queued)
    use = view.uses[0]
    waits = [msgspec.structs.replace(use, pid=100 + r) for r in range(len(threads))]
    shared = [
        msgspec.structs.replace(
            u, name="shared cores", value=float(cores), limit=float(u.pid if apart else 100)
        )
        for u in waits
    ]
    members = tuple(
        msgspec.structs.replace(m, notes={"threads": str(n)} if n else {})
        for m, n in zip(view.members, threads, strict=True)
    )
    return msgspec.structs.replace(view, members=members, uses=(*waits, *shared))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "three workers with four threads each share four cores": (
            _threaded(4, 4, 4),
            "3 workers on a have 12 threads for 4 cores, and wait for a core 50% of the time",
        ),
        "one worker has eight threads for the four cores of its own": (
            _threaded(4, 8, 4, apart=True),
            "worker 1 on a has 8 threads for 4 cores, and waits for a core 50% of the time",
        ),
    },
    silent_on={
        "three workers with four threads each share 16 cores": _threaded(4, 4, 4, cores=16),
        "three workers with four threads each have four cores of their own": _threaded(
            4, 4, 4, apart=True
        ),
        "three workers with one thread each share two cores": _threaded(1, 1, 1, cores=2),
        "the workers have many threads, but wait for a core only 5 % of the time": _threaded(
            4, 4, 4, queued=0.05
        ),
        "the number of threads is not known": _threaded(0, 0, 0),
        "the number of shared cores is not known": msgspec.structs.replace(
            _threaded(4, 4, 4), uses=_threaded(4, 4, 4).uses[:3]
        ),
    },
    passes=True,
    drill=("too-many-threads",),
    relations=Relations(measured=True),
)
