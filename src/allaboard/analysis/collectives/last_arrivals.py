"""Which rank enters the collectives last, by the time that each rank spends in them.

A collective ends on all ranks at about the same time, so the rank that is in it for the shortest time came
last, and the others waited for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median

import msgspec

from allaboard.facts.instruments.collective_times import CollectiveTimes, RankTimes

MIN_COLLECTIVES = 20
"""Collectives that must be matched on all ranks before any of them is judged."""
MIN_SHARE = 0.8
"""Share of them in which one rank must be the last."""
MIN_WAIT_SHARE = 0.2
"""Share of their time in the collective that the others must wait."""
MIN_WAIT_US = 1000.0
"""Time in microseconds that they must wait: below it, the clock of the GPU and the algorithm decide."""
SYMMETRIC = frozenset({"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"})
"""Collectives that no rank can leave before all have come. In others a root or a leaf is done sooner."""


class LastArrival(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that mostly enters the collectives of a communicator last."""

    rank: RankTimes
    """The rank."""
    share: float
    """Share of the collectives in which it came last."""
    count: int
    """How many collectives were matched."""
    wait_us: float
    """How long the rank that waits longest mostly waits for it, in microseconds."""
    duration_us: float
    """How long that rank mostly is in the collective."""


def find_last_arrivals(times: CollectiveTimes) -> Iterator[LastArrival]:
    """Yield the rank of each communicator that is last in most collectives, if there is one."""
    communicators: dict[tuple[str, int], dict[int, RankTimes]] = defaultdict(dict)
    for entry in times.ranks:
        communicators[entry.communicator, entry.size][entry.rank] = entry
    for (_, size), ranks in communicators.items():
        # Without the times of every rank, the one that came last may be one that is not here.
        if 1 < size == len(ranks):
            yield from _judge(ranks)


def _judge(ranks: dict[int, RankTimes]) -> Iterator[LastArrival]:
    durations: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for rank, entry in ranks.items():
        for collective in entry.collectives:
            if collective.operation in SYMMETRIC:
                key = collective.operation, collective.number
                durations[key][rank] = collective.duration_us
    matched = [d for d in durations.values() if len(d) == len(ranks)]
    if len(matched) < MIN_COLLECTIVES:
        return
    last_ranks = Counter(min(d, key=d.__getitem__) for d in matched)
    rank, count = last_ranks.most_common(1)[0]
    longest = median(max(d.values()) for d in matched)
    waited = median(max(d.values()) - d[rank] for d in matched)
    if (
        count / len(matched) >= MIN_SHARE
        and waited >= MIN_WAIT_US
        and waited >= MIN_WAIT_SHARE * longest
    ):
        yield LastArrival(
            rank=ranks[rank],
            share=count / len(matched),
            count=len(matched),
            wait_us=waited,
            duration_us=longest,
        )
