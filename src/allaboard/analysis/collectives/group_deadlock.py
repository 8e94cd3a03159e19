"""Members that wait for each other round in a circle, each in a call of another group."""

from __future__ import annotations

from collections import defaultdict

from allaboard.facts import GroupState, Member

Key = tuple[str, int]
Call = tuple[Key, int]
"""One call of a group, by its number there."""
Awaits = dict[Call, dict[Call, Member]]
"""Which call waits for which others, each with the first of the members in it that have yet to come."""


def crossed(waiting: tuple[Member, ...]) -> tuple[Member, ...]:
    """Some of those who wait, in calls of different groups, of whom each has yet to make the call that the
    one before it is in, and the first the call of the last; () where there are none. Two where two do."""
    awaits = _awaits(waiting)
    for call, others in awaits.items():
        for other, one in others.items():
            if call in awaits.get(other, ()):
                return _from_the_first([awaits[other][call], one])
    circle = _circle(awaits)
    return _from_the_first(
        [awaits[a][b] for a, b in zip(circle[-1:] + circle, circle, strict=False)]
    )


def _from_the_first(circle: list[Member]) -> tuple[Member, ...]:
    """The same circle, begun with its first rank."""
    first = min(range(len(circle)), key=lambda n: circle[n].who.rank, default=0)
    return (*circle[first:], *circle[:first])


def _awaits(waiting: tuple[Member, ...]) -> Awaits:
    inside = [(m, group) for m in waiting if (group := entered(m)) is not None]
    ranks = {group.key: group.ranks for _, group in reversed(inside)}
    found: Awaits = defaultdict(dict)
    if len(ranks) < 2:
        return found
    groups_of: dict[int, list[Key]] = defaultdict(list)
    for key, those in ranks.items():
        for rank in those:
            groups_of[rank].append(key)
    numbers: dict[Key, set[int]] = defaultdict(set)
    for _, mine in inside:
        numbers[mine.key].add(mine.number)
    for one, mine in inside:
        for key in groups_of[one.who.rank]:
            made = made_in(one, key)
            for number in numbers[key] if key != mine.key else ():
                if made < number:
                    found[key, number].setdefault((mine.key, mine.number), one)
    return found


def _circle(awaits: Awaits) -> list[Call]:
    """Calls of which each waits for the next, and the last for the first; each call is gone through once."""
    done: set[Call] = set()
    for start in awaits:
        way = [start] if start not in done else []
        left = {call: iter(awaits[call]) for call in way}
        while way:
            other = next(left[way[-1]], None)
            if other is None:
                done.add(way[-1])
                del left[way.pop()]
            elif other in left:
                return way[way.index(other) :]
            elif other not in done:
                way.append(other)
                left[other] = iter(awaits.get(other, ()))
    return []


def entered(member: Member) -> GroupState | None:
    """The group whose call it is in; None where it is in none that is counted."""
    op = member.op
    if op is None or not op.position:
        return None
    found = [s for s in member.groups if (s.name, s.number) == (op.group, op.position)]
    return found[-1] if found else None


def made_in(member: Member, key: Key) -> int:
    """How many calls it has made in this group."""
    return next((s.number for s in member.groups if s.key == key), 0)
