"""One rank enters nearly every collective last, and the others wait for it.

## Why it matters
The ranks meet in every step, so the slowest one sets the pace of all. NCCL's Inspector records how long
each rank is in each collective: the rank with the shortest time is not the fastest, it is the one that
came last.

## What to do
Look at what that rank does between the collectives: its input, its GPU's clock and temperature
(`nvidia-smi -q -d PERFORMANCE`), other processes on its host, work that only one rank does (logging,
evaluation, checkpoints). If its times are the same after the rank has moved to another host, the work is
uneven; else it is the host.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.collectives.last_arrivals import LastArrival, find_last_arrivals
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Who
from allaboard.facts.instruments.collective_times import CollectiveTimes, RankTimes, TimedCollective


def check(times: CollectiveTimes) -> Iterator[Claim]:
    largest = max((r.size for r in times.ranks), default=0)
    for arrival in find_last_arrivals(times):
        entry = arrival.rank
        same_pid = [m for m in times.members if entry.pid and m.pid == entry.pid]
        is_of_all = entry.size == largest
        member = (
            same_pid[0]
            if len(same_pid) == 1
            else Who(index=entry.rank, rank=entry.rank, host=entry.host, pid=entry.pid)
            if is_of_all
            else Who(job="process", index=-1, host=entry.host, pid=entry.pid)
        )
        yield Claim(
            summary=f"{f'rank {member.rank}' if member.rank >= 0 else member.name} comes last to "
            f"{arrival.share:.0%} of the collectives; others mostly wait "
            f"{_milliseconds(arrival.wait_us)} of {_milliseconds(arrival.duration_us)} for it",
            who=(member,),
            evidence=_evidence(arrival),
            fix="look at its host: nvidia-smi -q -d PERFORMANCE,CLOCK; top; and at what this rank alone does",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
        )


def _milliseconds(us: float) -> str:
    return f"{us / 1000:.1f} ms"


def _evidence(arrival: LastArrival) -> tuple[Evidence, ...]:
    entry = arrival.rank
    return (
        Evidence(
            f"{arrival.count} collectives of communicator {entry.communicator} are recorded on all "
            f"{entry.size} ranks; rank {entry.rank} is in them for the shortest time",
            str(entry.place),
        ),
        Evidence(f"rank {entry.rank} is pid {entry.pid} on {entry.host}", str(entry.place)),
    )


def _times(*durations_ms: float, count: int = 30, operation: str = "AllReduce") -> CollectiveTimes:
    return CollectiveTimes(
        ranks=tuple(
            RankTimes(
                communicator="0x7f",
                rank=rank,
                size=len(durations_ms),
                host="node7",
                pid=4700 + rank,
                collectives=tuple(
                    TimedCollective(operation, n, duration * 1000) for n in range(count)
                ),
                place=Place(file=f"rank{rank}.log", line=1),
            )
            for rank, duration in enumerate(durations_ms)
        )
    )


_UNEVEN = _times(15.0, 14.0, 3.0, 15.5)

RULE = Rule(
    reads=CollectiveTimes,
    check=check,
    fires_on={
        "one rank is always last": (
            _UNEVEN,
            "rank 2 comes last to 100% of the collectives; others mostly wait 12.5 ms of 15.5 ms for it",
        )
    },
    silent_on={
        "all ranks enter at nearly the same time": _times(15.0, 14.8, 14.9, 15.1),
        "only five collectives are recorded": _times(15.0, 3.0, count=5),
        "the times of one rank are missing": msgspec.structs.replace(
            _UNEVEN, ranks=_UNEVEN.ranks[:3]
        ),
        "a broadcast, in which the root is done sooner": _times(1.0, 15.0, operation="Broadcast"),
        "a wait too short to matter": _times(0.9, 0.1),
    },
    unstaged="NCCL needs GPUs; its inputs are from the plugin's source",
)
