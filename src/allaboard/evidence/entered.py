"""Two members that wait for each other because they entered their groups in different orders."""

from __future__ import annotations

from collections import defaultdict

from allaboard.facts import GroupState, Member

Key = tuple[str, int]
Place = tuple[int, tuple[tuple[Key, int], ...]]
"""The number of the call that it is in, and how many calls it has made in its other groups."""


def crossed(waiting: tuple[Member, ...]) -> tuple[Member, Member] | None:
    """The first two of those who wait, in calls of different groups, of whom each has yet to make the
    call that the other is in; None where there are none."""
    inside = [(m, group) for m in waiting if (group := entered(m)) is not None]
    ranks = {group.key: group.ranks for _, group in reversed(inside)}
    if len(ranks) < 2:
        return None
    groups_of: dict[int, list[Key]] = defaultdict(list)
    for key, those in ranks.items():
        for rank in those:
            groups_of[rank].append(key)
    places: dict[Key, dict[Place, Member]] = defaultdict(dict)
    for one, mine in inside:
        behind = tuple((k, _made(one, k)) for k in groups_of[one.who.rank] if k != mine.key)
        # Most are where others are, in all their groups: the first of them stands for all.
        places[mine.key].setdefault((mine.number, behind), one)
    for one, mine in inside:
        for key in groups_of[one.who.rank]:
            for (number, behind), other in places[key].items() if key != mine.key else ():
                if (
                    _made(one, key) < number
                    and dict(behind).get(mine.key, mine.number) < mine.number
                ):
                    return one, other
    return None


def entered(one: Member) -> GroupState | None:
    """The group whose call it is in; None where it is in none that is counted."""
    op = one.op
    if op is None or not op.position:
        return None
    found = [s for s in one.groups if (s.name, s.number) == (op.group, op.position)]
    return found[-1] if found else None


def _made(one: Member, key: Key) -> int:
    """How many calls it has made in this group."""
    return next((s.number for s in one.groups if s.key == key), 0)
