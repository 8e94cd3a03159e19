"""Who waits for whom, as groups of ranks that wait in the same operation for the same ranks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from allaboard.faces.watch.run_summary import place_of
from allaboard.facts import Activity, RankState
from allaboard.feed.lane_choice import TROUBLED
from allaboard.report.plain_text import clean

MAX_GROUPS = 50
"""Groups that are shown."""
MAX_AWAITED = 8
"""Awaited ranks of a group that are named."""
MAX_RANGES = 12
"""Ranges of ranks that are written out."""


class AwaitedRank(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that others wait for."""

    name: str
    """Its name."""
    activity: str
    """What it does."""
    place: str
    """Where it stands; "" if not known."""


class WaitGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that wait together."""

    ranks: str
    """The ranks, as "0, 2-7"."""
    count: int
    """How many they are."""
    operation: str
    """The operation that they are inside of."""
    seconds: float
    """How long the one that came to it earliest has waited."""
    awaited: tuple[AwaitedRank, ...]
    """The members that have not come, as far as they are named."""
    awaited_count: int
    """How many have not come."""
    troubled: tuple[AwaitedRank, ...] = ()
    """Members that are stopped, failed or lost, if it is not known for whom the group waits: DDP's own
    operations may stop a member that has come to them."""


def wait_groups(ranks: Sequence[RankState]) -> tuple[WaitGroup, ...]:
    """Return the groups, the largest first."""
    members: dict[tuple[str, tuple[str, ...], int], list[RankState]] = {}
    for rank in ranks:
        is_waiting = rank.activity is Activity.WAITING or rank.waits_for
        if is_waiting and rank.operation and not rank.end:
            key = rank.operation, rank.waits_for, rank.waits_for_count
            members.setdefault(key, []).append(rank)
    by_name = {r.name: r for r in ranks} if members else {}
    troubled = [r for r in ranks if r.activity in TROUBLED] if members else []
    groups = [
        WaitGroup(
            ranks=name_ranks(group),
            count=len(group),
            operation=clean(operation),
            seconds=round(max(r.operation_s for r in group), 1),
            awaited=tuple(_awaited(name, by_name.get(name)) for name in names[:MAX_AWAITED]),
            awaited_count=max(count, len(names)),
            troubled=() if names else tuple(_awaited(r.name, r) for r in troubled[:MAX_AWAITED]),
        )
        for (operation, names, count), group in members.items()
    ]
    return tuple(sorted(groups, key=lambda g: -g.count)[:MAX_GROUPS])


def name_ranks(ranks: Sequence[RankState]) -> str:
    """Return the ranks as ranges, "0, 2-7"; processes without a rank by name."""
    parts = rank_ranges(r.rank for r in ranks if r.rank >= 0)
    parts += [clean(r.name) for r in ranks if r.rank < 0]
    hidden = len(parts) - MAX_RANGES
    return ", ".join(parts[:MAX_RANGES]) + (f" and {hidden} more ranges" if hidden > 0 else "")


def rank_ranges(numbers: Iterable[int]) -> list[str]:
    """Return the numbers as ranges: ["0", "2-7"]."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number <= spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return [str(a) if a == b else f"{a}-{b}" for a, b in spans]


def _awaited(name: str, rank: RankState | None) -> AwaitedRank:
    if rank is None:
        return AwaitedRank(name=clean(name), activity="", place="")
    return AwaitedRank(name=clean(name), activity=str(rank.activity), place=place_of(rank))
