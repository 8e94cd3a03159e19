"""Among the places of many ranks: who waits for the others, and who is the odd one out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.stacks.groups import StackGroup
from allaboard.analysis.stacks.stack_classifier import Spot
from allaboard.facts import Frame

PEER_WAIT_SPOTS = (
    Spot.GATE,
    Spot.INIT,
    Spot.GROUP,
    Spot.COLLECTIVE,
    Spot.STEP,
    Spot.SERVER,
    Spot.SESSION,
)


class Outliers(msgspec.Struct, frozen=True):
    """``waiting`` wait for their peers; ``odd`` are not where most are, those of fewest ranks first;
    ``elsewhere``: the odd ones do not wait for peers at all, rather than at another place."""

    waiting: tuple[StackGroup, ...]
    outliers: tuple[StackGroup, ...]
    are_elsewhere: bool


def find_outliers(groups: Iterable[StackGroup]) -> Outliers:
    """Who is awaited. Where some wait for peers and others do not, the others. Where all wait, those
    that wait at another place than more than half of all. Else nobody: one look at ranks that
    compute shows them at many places by right."""
    readable = [g for g in groups if g.frames]
    waiting = [g for g in readable if g.spot in PEER_WAIT_SPOTS]
    not_waiting = [g for g in readable if g.spot not in PEER_WAIT_SPOTS]
    if waiting and not_waiting:
        return Outliers(tuple(waiting), _smallest_first(not_waiting), True)
    places: dict[tuple[Spot, Frame | None], list[StackGroup]] = {}
    for group in waiting:
        places.setdefault((group.spot, group.user), []).append(group)
    total = sum(len(g.ranks) for g in waiting)
    largest = max(places.values(), key=_count_ranks, default=[])
    if len(places) < 2 or _count_ranks(largest) * 2 <= total:
        return Outliers(tuple(waiting), (), False)
    return Outliers(
        tuple(largest), _smallest_first([g for g in waiting if g not in largest]), False
    )


def _count_ranks(groups: list[StackGroup]) -> int:
    return sum(len(g.ranks) for g in groups)


def _smallest_first(groups: list[StackGroup]) -> tuple[StackGroup, ...]:
    return tuple(sorted(groups, key=lambda g: (len(g.ranks), g.ranks[0])))
