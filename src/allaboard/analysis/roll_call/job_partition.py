"""Which of those who came to an init belong together.

Several jobs under one command (a sweep, one after the other or side by side) are told apart by the place
where their members mean to meet; the workers of ``-n N`` are one job, unless they make several worlds that
need no more workers than there are. A process that one of them has started while it trains (a checkpoint in
the background, an engine) makes a world of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from allaboard.facts import JobView, Member, Phase

SETTLE = 10.0
"""Seconds after the last arrival from which a comparison does not wait for late members any more."""


def worlds(view: JobView, people: list[Member], came: list[Member]) -> list[list[Member]]:
    """Those of the ``people`` that ``came``, one list a world."""
    declared = [m for m in came if m.declared is not None and m.declared.world_size > 1]
    alone = [m for m in came if m.declared is not None and m.declared.world_size == 1]
    if (view.launched > 1 or view.joined) and declared:
        inner = _nested(came)
        within = {m.called for m in inner}
        own = [m for m in declared if m.called not in within]
        # Under -n N a worker that declares itself alone belongs to the same job, wrongly.
        outer = _several(view, own) or [[m for m in came if m.called not in within]]
        return outer + _by_place(inner, merge=True)
    if alone and not declared:
        return [[m] for m in alone] if _all_alone(view, people, alone) else []
    # Of two jobs side by side, who comes first of each would seem to complete the other.
    last = max([m.phase_since for m in declared], default=0.0)
    quiet = not any(m.in_user_code for m in people) or view.now - last >= SETTLE
    return _by_place(declared, merge=quiet)


def _several(view: JobView, declared: list[Member]) -> list[list[Member]]:
    """The workers of one command by the worlds that they make of themselves, each at a place of its own; none
    where these would need more workers than there are: then somebody has a wrong place."""
    places: dict[str, list[Member]] = defaultdict(list)
    for member in declared:
        assert member.declared is not None
        places[member.declared.place].append(member)
    sizes = [max(sizes_of(members)) for members in places.values()]
    several = len(places) > 1 and not view.joined and sum(sizes) <= view.launched
    return list(places.values()) if several else []


def _nested(came: list[Member]) -> list[Member]:
    """Processes of a worker of which another process has been let through its own init, and lives: they make
    worlds of their own (a checkpoint in the background, an engine), at places of their own."""
    through = {
        (m.worker, m.who.host): m
        for m in came
        if m.alive and Phase.ARRIVED < m.phase < Phase.LEAVING
    }
    found = []
    for m in came:
        other = through.get((m.worker, m.who.host))
        if other is None or other is m or m.declared is None or other.declared is None:
            continue
        if m.started_at > other.started_at and m.declared.place != other.declared.place:
            found.append(m)
    return found


def sizes_of(members: Iterable[Member]) -> dict[int, list[Member]]:
    """Who declared each world size."""
    sizes: dict[int, list[Member]] = defaultdict(list)
    for member in members:
        assert member.declared is not None
        sizes[member.declared.world_size].append(member)
    return sizes


def _all_alone(view: JobView, people: list[Member], alone: list[Member]) -> bool:
    """Whether members of worlds of one may go on: nobody else may yet come and say that they belong
    together, or nobody did for a while."""
    if view.launched <= 1 or not any(m.in_user_code for m in people):
        return True
    return view.now - max(m.phase_since for m in alone) >= SETTLE


def _by_place(members: Iterable[Member], merge: bool) -> list[list[Member]]:
    places: dict[object, list[Member]] = defaultdict(list)
    for member in members:
        assert member.declared is not None
        if member.alive or member.phase >= Phase.ARRIVED:
            places[(member.worker, member.declared.place)].append(member)
    groups: list[list[Member]] = []
    for members_here in places.values():
        # One job in which somebody has a wrong address: same size, no rank in common, not full.
        other = next((g for g in groups if merge and _completes(g, members_here)), None)
        if other is None:
            groups.append(list(members_here))
        else:
            other += members_here
    return groups


def _completes(one: list[Member], other: list[Member]) -> bool:
    sizes = {m.declared.world_size for m in one + other if m.declared is not None}
    ranks = [m.declared.rank for m in one + other if m.declared is not None]
    return len(sizes) == 1 and len(set(ranks)) == len(ranks) and len(one) < max(sizes)
