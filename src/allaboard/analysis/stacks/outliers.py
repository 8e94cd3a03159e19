"""Among the places of many ranks: who waits for the others, and who is the odd one out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.stacks.groups import Group
from allaboard.analysis.stacks.stack_classifier import Spot
from allaboard.facts import Frame

WAITS = (Spot.GATE, Spot.INIT, Spot.GROUP, Spot.COLLECTIVE, Spot.STEP, Spot.SERVER, Spot.SESSION)


class Odd(msgspec.Struct, frozen=True):
    """``waiting`` wait for their peers; ``odd`` are not where most are, those of fewest ranks first;
    ``elsewhere``: the odd ones do not wait for peers at all, rather than at another place."""

    waiting: tuple[Group, ...]
    odd: tuple[Group, ...]
    elsewhere: bool


def outliers(groups: Iterable[Group]) -> Odd:
    """Who is awaited. Where some wait for peers and others do not, the others. Where all wait, those
    that wait at another place than more than half of all. Else nobody: one look at ranks that
    compute shows them at many places by right."""
    known = [g for g in groups if g.frames]
    waiting = [g for g in known if g.spot in WAITS]
    others = [g for g in known if g.spot not in WAITS]
    if waiting and others:
        return Odd(tuple(waiting), _fewest(others), True)
    places: dict[tuple[Spot, Frame | None], list[Group]] = {}
    for group in waiting:
        places.setdefault((group.spot, group.user), []).append(group)
    total = sum(len(g.ranks) for g in waiting)
    most = max(places.values(), key=_count, default=[])
    if len(places) < 2 or _count(most) * 2 <= total:
        return Odd(tuple(waiting), (), False)
    return Odd(tuple(most), _fewest([g for g in waiting if g not in most]), False)


def _count(groups: list[Group]) -> int:
    return sum(len(g.ranks) for g in groups)


def _fewest(groups: list[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda g: (len(g.ranks), g.ranks[0])))
