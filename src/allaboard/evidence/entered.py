"""Two members that wait for each other because they entered their groups in different orders."""

from __future__ import annotations

from itertools import combinations

from allaboard.facts import GroupState, Member


def crossed(waiting: tuple[Member, ...]) -> tuple[Member, Member] | None:
    """The first two of those who wait, in calls of different groups, of whom each has yet to make the
    call that the other is in; None where there are none."""
    pairs = combinations([m for m in waiting if m.op is not None and m.op.position], 2)
    return next(((a, b) for a, b in pairs if _awaits(a, b) and _awaits(b, a)), None)


def entered(one: Member) -> GroupState | None:
    """The group whose call it is in."""
    op = one.op
    found = [s for s in one.groups if op and (s.name, s.number) == (op.group, op.position)]
    return found[-1] if found else None


def _awaits(one: Member, other: Member) -> bool:
    mine, theirs = entered(one), entered(other)
    if mine is None or theirs is None or mine.key == theirs.key:
        return False
    there = next((s.number for s in other.groups if s.key == mine.key), 0)
    return other.who.rank in mine.ranks and there < mine.number
