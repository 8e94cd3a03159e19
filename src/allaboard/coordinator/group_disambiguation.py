"""Groups of one name in several worlds under one command: every world has a default group "0".

Two members that have the same rank in the same group are in two worlds, or one after the other in the same
place of one. If the members' rendezvous addresses tell the worlds apart, their groups get different names, so
that rules do not take them for one. If they do not, and one of the two has ended, the group is that of the
member that lives; else nothing is reported of such a group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum, auto

import msgspec

from allaboard.facts import Member
from allaboard.facts.collective_calls import GroupKey

WORLD_MARK = "@"
"""Separates the group's own name from the rendezvous address of its world."""


class GroupOwner(Enum):
    """The way in which the world of a member's group is known."""

    PLACE = auto()
    """Its members have rendezvous addresses that differ."""
    LIVING = auto()
    """Only one of its members lives."""
    UNKNOWN = auto()


def separate_same_named_groups(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return the members with groups that are each of one world.

    This is the same tuple if they are so already, as in nearly every job.
    """
    ranks = [m.who.rank for m in members if m.groups]
    owners = _owners_of_shared_groups(members) if len(set(ranks)) < len(ranks) else {}
    if not owners:
        return members
    return tuple([_with_separate_groups(m, owners) if m.groups else m for m in members])


def group_name_in_process(group: str) -> str:
    """Return the name by which the members themselves know the group."""
    return group.partition(WORLD_MARK)[0]


def _owners_of_shared_groups(members: Iterable[Member]) -> dict[GroupKey, GroupOwner]:
    """Return the groups in which a rank is there twice, and how they are told apart."""
    members_by_rank: dict[tuple[int, GroupKey], list[Member]] = defaultdict(list)
    for member in members:
        for group in member.groups:
            members_by_rank[member.who.rank, group.key].append(member)
    owners: dict[GroupKey, GroupOwner] = {}
    for (_, key), same_rank in members_by_rank.items():
        if len(same_rank) > 1:
            owner = _owner(same_rank)
            owners[key] = max(owner, owners.get(key, owner), key=lambda o: o.value)
    return owners


def _owner(same_rank: list[Member]) -> GroupOwner:
    if len({_place(m) for m in same_rank}) == len(same_rank):
        return GroupOwner.PLACE
    return GroupOwner.LIVING if sum(m.alive for m in same_rank) == 1 else GroupOwner.UNKNOWN


def _place(member: Member) -> str:
    return member.declared.place if member.declared is not None else ""


def _with_separate_groups(member: Member, owners: dict[GroupKey, GroupOwner]) -> Member:
    address = _place(member)

    def name_of(key: GroupKey) -> str | None:
        """Return the name that the group gets; None if nothing is to be reported of it."""
        owner = owners.get(key)
        if owner is GroupOwner.PLACE:
            return f"{key[0]}{WORLD_MARK}{address}"
        is_kept = owner is None or (owner is GroupOwner.LIVING and member.alive)
        return key[0] if is_kept else None

    groups = [(name_of(g.key), g) for g in member.groups]
    traces = [(name_of((t.group, t.round)), t) for t in member.traces]
    unused = [(name_of(u.key), u) for u in member.unused]
    replace = msgspec.structs.replace
    op = member.op
    if op is not None and op.group:
        name = next((n for n, group in groups if group.name == op.group), op.group)
        op = replace(op, group=name or "", position=op.position if name else 0)
    return replace(
        member,
        groups=tuple([replace(g, name=n) for n, g in groups if n is not None]),
        traces=tuple([replace(t, group=n) for n, t in traces if n is not None]),
        unused=tuple([replace(u, group=n) for n, u in unused if n is not None]),
        op=op,
    )
