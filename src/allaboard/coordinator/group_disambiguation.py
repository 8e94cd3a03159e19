"""Groups of one name in several worlds under one command: every world has a default group "0".

Two members that are the same rank in the same group are in two worlds, or one after the other in the same
place of one. Where the members' places tell the worlds apart, their groups get names by which rules cannot
take them for one. Where they do not, and one of the two has ended, the group is that of the living; else
nothing of such a group is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum, auto

import msgspec

from allaboard.facts import Member

MARK = "@"
"""Between the group's own name and the place of its world."""
Key = tuple[str, int]


class Whose(Enum):
    """What tells to which world a member's group belongs."""

    PLACE = auto()
    LIVING = auto()
    UNKNOWN = auto()


def separate_same_named_groups(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The members with groups that are each of one world; the same tuple where they are so already, as in
    nearly every job."""
    ranks = [m.who.rank for m in members if m.groups]
    shared = _shared(members) if len(set(ranks)) < len(ranks) else {}
    if not shared:
        return members
    return tuple([_of_its_world(m, shared) if m.groups else m for m in members])


def group_name_in_process(group: str) -> str:
    """As the members themselves call it."""
    return group.partition(MARK)[0]


def _shared(members: Iterable[Member]) -> dict[Key, Whose]:
    """The groups in which one rank is there twice."""
    seen: dict[tuple[int, Key], list[Member]] = defaultdict(list)
    for one in members:
        for state in one.groups:
            seen[one.who.rank, state.key].append(one)
    found: dict[Key, Whose] = {}
    for (_, key), those in seen.items():
        if len(those) > 1:
            told = _whose(those)
            found[key] = max(told, found.get(key, told), key=lambda w: w.value)
    return found


def _whose(those: list[Member]) -> Whose:
    if len({_place(m) for m in those}) == len(those):
        return Whose.PLACE
    return Whose.LIVING if sum(m.alive for m in those) == 1 else Whose.UNKNOWN


def _place(one: Member) -> str:
    return one.declared.place if one.declared is not None else ""


def _of_its_world(one: Member, shared: dict[Key, Whose]) -> Member:
    place = _place(one)

    def named(key: Key) -> str | None:
        whose = shared.get(key)
        if whose is Whose.PLACE:
            return f"{key[0]}{MARK}{place}"
        return key[0] if whose is None or (whose is Whose.LIVING and one.alive) else None

    groups = [(named(s.key), s) for s in one.groups]
    traces = [(named((t.group, t.round)), t) for t in one.traces]
    unused = [(named(u.key), u) for u in one.unused]
    replace = msgspec.structs.replace
    op = one.op
    if op is not None and op.group:
        mine = next((n for n, s in groups if s.name == op.group), op.group)
        op = replace(op, group=mine or "", position=op.position if mine else 0)
    return replace(
        one,
        groups=tuple([replace(s, name=n) for n, s in groups if n is not None]),
        traces=tuple([replace(t, group=n) for n, t in traces if n is not None]),
        unused=tuple([replace(u, group=n) for n, u in unused if n is not None]),
        op=op,
    )
