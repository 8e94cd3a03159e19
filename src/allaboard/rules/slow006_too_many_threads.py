"""The workers of a host have more threads than it has cores, and often wait for a core.

This is reported if the threads of all ranks together (as PyTorch was told, `torch.get_num_threads()`) are
more than the cores, some rank has more than one, and the ranks' main threads stood in the kernel's run
queue for three tenths of the time or more.

## Why it matters
Threads of one matrix product that cannot run at the same time wait for each other: each rank is slower than
it would be with one thread.

## What to do
Set `OMP_NUM_THREADS` to cores / ranks. Unless you set it, it is 1 (torchrun and `allaboard run -n` set it
to 1). The same goes for `torch.set_num_threads()` in the script. Count DataLoader workers too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.contracts import Rule
from allaboard.evidence.host_load import busy, loaded, trains
from allaboard.facts import Claim, Evidence, JobView, Member, Stage, Use

QUEUED = 0.3
"""Share of its time that a main thread waits for a core."""
SPAN = 10.0


def check(view: JobView) -> Iterator[Claim]:
    if not any("threads" in m.notes and m.notes["threads"] != "1" for m in view.alive):
        return
    if not trains(view):
        return
    hosts: dict[str, list[Member]] = defaultdict(list)
    for one in view.alive:
        if not one.launcher:
            hosts[one.who.host].append(one)
    waits = {(u.host, u.pid): u for u in view.uses if u.name == "queued" and u.span >= SPAN}
    for host, members in hosts.items():
        threads = [int(m.notes.get("threads", "0") or 0) for m in members]
        cores = math.ceil(max(m.load.allowed for m in members))
        queued = [u for m in members if (u := waits.get((host, m.who.pid))) is not None]
        if max(threads) < 2 or not 0 < cores < sum(threads) or len(queued) < len(members):
            continue
        if min(u.rate for u in queued) >= QUEUED:
            yield _claim(members, threads, cores, queued)


def _claim(members: list[Member], threads: list[int], cores: int, queued: list[Use]) -> Claim:
    host = members[0].who.host
    each = max(1, cores // len(members))
    return loaded(
        tuple(members),
        f"{len(members)} workers on {host} have {sum(threads)} threads for {cores} cores, and wait "
        f"for a core {min(u.rate for u in queued):.0%} of the time",
        Evidence(
            ", ".join(
                f"rank {m.who.rank} {n} threads, waits {u.rate:.0%}"
                for m, n, u in list(zip(members, threads, queued, strict=True))[:8]
            ),
            "torch.get_num_threads(), /proc/PID/schedstat",
        ),
        f"export OMP_NUM_THREADS={each}   # cores / workers",
    )


def _threaded(*threads: int, cores: int = 4, queued: float = 0.5) -> JobView:
    view = busy("queued", queued)
    uses = tuple(msgspec.structs.replace(view.uses[0], pid=100 + r) for r in range(len(threads)))
    members = tuple(
        msgspec.structs.replace(
            m,
            notes={"threads": str(n)} if n else {},
            load=msgspec.structs.replace(m.load, allowed=cores),
        )
        for m, n in zip(view.members, threads, strict=True)
    )
    return msgspec.structs.replace(view, members=members, uses=uses)


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    fires_on={
        "four each": (
            _threaded(4, 4, 4),
            "3 workers on a have 12 threads for 4 cores, and wait for a core 50% of the time",
        ),
    },
    silent_on={
        "they fit": _threaded(4, 4, 4, cores=16),
        "one each": _threaded(1, 1, 1, cores=2),
        "they sleep most of the time": _threaded(4, 4, 4, queued=0.05),
        "not known": _threaded(0, 0, 0),
    },
    since="0.1",
    passes=True,
    drill=("too-many-threads",),
)
