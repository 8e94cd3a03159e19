"""By how many batches ranks are behind the others: who has left its loop early calls what comes after it."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Frame, Member


def fewer(odd: Iterable[Member], others: Iterable[Member]) -> tuple[int, int] | None:
    """The batches that the odd ones and the others took in the same pass of the same loop, where all odd
    ones took equally many and their data had no more, and all others equally many more; None where that is
    not so, or not known. Who calls something else in the middle of its loop is a batch behind the others,
    too, and did no step fewer."""
    odd = list(odd)
    few, many = _taken(odd), _taken(others)
    for key in few.keys() & many.keys():
        one, other = few[key], many[key]
        over = all((p.place, p.ended) == key for m in odd for p in m.loops if p.place == key[0])
        if over and len(one) == len(other) == 1 and min(one) < min(other):
            return min(one), min(other)
    return None


def _taken(members: Iterable[Member]) -> dict[tuple[Frame, int], set[int]]:
    """Numbers of batches by loop and pass; -1 for a member that is not in it."""
    members = list(members)
    keys = {(loop.place, loop.pass_) for m in members for loop in m.loops}
    return {
        key: {next((p.batches for p in m.loops if (p.place, p.pass_) == key), -1) for m in members}
        for key in keys
    }
