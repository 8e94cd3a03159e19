"""Cycles of members that wait for each other, each in a call of another group."""

from __future__ import annotations

from collections import defaultdict

from allaboard.facts import GroupState, Member
from allaboard.facts.collective_calls import GroupKey

GroupCall = tuple[GroupKey, int]
"""One call of a group, by its number there."""
AwaitedCalls = dict[GroupCall, dict[GroupCall, Member]]
"""Calls that each call waits for, each with the first member inside it that the waiting call lacks."""


def find_group_cycle(waiting: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return waiting members that form a cycle, in calls of different groups; () if there is none.

    Each member has yet to make the call that the one before it is in, and the first the call of the last. A
    cycle of two members is preferred.
    """
    awaits = _find_awaited_calls(waiting)
    # A cycle of two is the easiest to explain: look for one before any longer cycle.
    for call, awaited_calls in awaits.items():
        for awaited_call, member in awaited_calls.items():
            if call in awaits.get(awaited_call, ()):
                return _start_at_lowest_rank([awaits[awaited_call][call], member])
    cycle = _find_cycle(awaits)
    return _start_at_lowest_rank(
        [awaits[a][b] for a, b in zip(cycle[-1:] + cycle, cycle, strict=False)]
    )


def _start_at_lowest_rank(cycle: list[Member]) -> tuple[Member, ...]:
    """Return the same cycle, rotated so that it begins with its lowest rank."""
    lowest = min(range(len(cycle)), key=lambda n: cycle[n].who.rank, default=0)
    return (*cycle[lowest:], *cycle[:lowest])


def _find_awaited_calls(waiting: tuple[Member, ...]) -> AwaitedCalls:
    members_in_calls = [(m, group) for m in waiting if (group := entered_group(m)) is not None]
    # Reversed, so that the first member of each group decides.
    ranks = {group.key: group.ranks for _, group in reversed(members_in_calls)}
    awaits: AwaitedCalls = defaultdict(dict)
    if len(ranks) < 2:
        return awaits
    groups_of: dict[int, list[GroupKey]] = defaultdict(list)
    for key, group_ranks in ranks.items():
        for rank in group_ranks:
            groups_of[rank].append(key)
    numbers: dict[GroupKey, set[int]] = defaultdict(set)
    for _, entered_state in members_in_calls:
        numbers[entered_state.key].add(entered_state.number)
    for member, entered_state in members_in_calls:
        for key in groups_of[member.who.rank]:
            calls_made = calls_made_in(member, key)
            for number in numbers[key] if key != entered_state.key else ():
                if calls_made < number:
                    awaits[key, number].setdefault(
                        (entered_state.key, entered_state.number), member
                    )
    return awaits


def _find_cycle(awaits: AwaitedCalls) -> list[GroupCall]:
    """Return calls of which each waits for the next, and the last for the first; [] if there is no cycle.

    This is a depth-first search that visits each call once; it keeps its own stack, since thousands of groups
    could exceed Python's recursion limit.
    """
    done: set[GroupCall] = set()
    for start in awaits:
        path = [start] if start not in done else []
        unexplored = {call: iter(awaits[call]) for call in path}
        while path:
            next_call = next(unexplored[path[-1]], None)
            if next_call is None:
                done.add(path[-1])
                del unexplored[path.pop()]
            elif next_call in unexplored:
                return path[path.index(next_call) :]
            elif next_call not in done:
                path.append(next_call)
                unexplored[next_call] = iter(awaits.get(next_call, ()))
    return []


def entered_group(member: Member) -> GroupState | None:
    """Return the group whose call the member is in; None if it is in no counted call."""
    op = member.op
    if op is None or not op.position:
        return None
    states = [s for s in member.groups if (s.name, s.number) == (op.group, op.position)]
    return states[-1] if states else None


def calls_made_in(member: Member, key: GroupKey) -> int:
    """Return how many calls the member has made in this group."""
    return next((s.number for s in member.groups if s.key == key), 0)
