"""Members of several worlds of ranks under one command: those of one never wait for those of another in a
collective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view


def members_of_same_worlds(
    view: JobView, members: tuple[Member, ...], counterparts: tuple[Member, ...]
) -> tuple[Member, ...]:
    """Return the members that are in one world with any of the counterparts; all of them if there are no
    counterparts, or if nothing shows several worlds."""
    ranks_at = ranks_by_place(view)
    if len(ranks_at) < 2 or not counterparts:
        return members
    places = {meeting_place_of(m) for m in counterparts}
    return tuple(
        m for m in members if any(not are_apart(ranks_at, meeting_place_of(m), p) for p in places)
    )


@cached_per_view
def ranks_by_place(view: JobView) -> Mapping[str, set[int]]:
    """Return the ranks that met at each place, by what they told their framework."""
    ranks_at: dict[str, set[int]] = defaultdict(set)
    for member in view.members:
        if address := meeting_place_of(member):
            ranks_at[address].add(member.who.rank)
    return ranks_at


def are_apart(ranks_at: Mapping[str, set[int]], address: str, other_address: str) -> bool:
    """Return True if the places are those of two worlds: one world may know its place by two names, but has
    no rank twice."""
    if address == other_address or address not in ranks_at or other_address not in ranks_at:
        return False
    return bool(ranks_at[address] & ranks_at[other_address])


def meeting_place_of(member: Member) -> str:
    """Return where the member meets its peers; "" if that is not known."""
    return member.declared.place if member.declared is not None else ""
