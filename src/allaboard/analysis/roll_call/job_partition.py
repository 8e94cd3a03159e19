"""Division of the members that reached an init into worlds that belong together.

Several jobs under one command (a sweep, one after the other or side by side) differ in the place where their
members meet. The workers of ``-n N`` are one job, unless they form several worlds that need no more workers
than there are. A process that a member has started during its training (a background checkpoint, an inference
engine) forms a world of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from allaboard.facts import JobView, Member, Phase

SETTLE_S = 10.0
"""Seconds after the last arrival until a comparison stops waiting for late members."""


def partition_into_worlds(
    view: JobView, processes: list[Member], declarers: list[Member]
) -> list[list[Member]]:
    """Return the members of each world. ``declarers`` are those of the ``processes`` that reached an init."""
    declared = [m for m in declarers if m.declared is not None and m.declared.world_size > 1]
    alone = [m for m in declarers if m.declared is not None and m.declared.world_size == 1]
    if (view.launched > 1 or view.joined) and declared:
        nested = _nested_processes(declarers)
        nested_keys = {m.event_key for m in nested}
        own_declarers = [m for m in declared if m.event_key not in nested_keys]
        # Under -n N, a worker that declares a world size of 1 belongs to the same job, by mistake.
        separate_worlds = _split_by_place(view, own_declarers) or [
            [m for m in declarers if m.event_key not in nested_keys]
        ]
        return separate_worlds + _group_by_place(nested, merge=True)
    if alone and not declared:
        return [[m] for m in alone] if _may_go_on_alone(view, processes, alone) else []
    # Of two jobs side by side, the first member of one would seem to complete the other.
    last_arrival = max([m.phase_since for m in declared], default=0.0)
    is_settled = not any(m.in_user_code for m in processes) or view.now - last_arrival >= SETTLE_S
    return _group_by_place(declared, merge=is_settled)


def _split_by_place(view: JobView, declared: list[Member]) -> list[list[Member]]:
    """Return the workers of one command divided into worlds, each with a meeting place of its own.

    Return [] if these worlds would need more workers than there are: then a member has a wrong address.
    """
    places: dict[str, list[Member]] = defaultdict(list)
    for member in declared:
        assert member.declared is not None
        places[member.declared.place].append(member)
    sizes = [max(members_by_world_size(members)) for members in places.values()]
    is_several = len(places) > 1 and not view.joined and sum(sizes) <= view.launched
    return list(places.values()) if is_several else []


def _nested_processes(declarers: list[Member]) -> list[Member]:
    """Return processes that a member has started after its own init, with meeting places of their own.

    They form worlds of their own (a background checkpoint, an inference engine).
    """
    through_init = {
        (member.worker, member.who.host): member
        for member in declarers
        if member.alive and Phase.ARRIVED < member.phase < Phase.LEAVING
    }
    nested = []
    for member in declarers:
        other_process = through_init.get((member.worker, member.who.host))
        if (
            other_process is None
            or other_process is member
            or member.declared is None
            or other_process.declared is None
        ):
            continue
        if (
            member.started_at > other_process.started_at
            and member.declared.place != other_process.declared.place
        ):
            nested.append(member)
    return nested


def members_by_world_size(members: Iterable[Member]) -> dict[int, list[Member]]:
    """Return the members that declared each world size."""
    sizes: dict[int, list[Member]] = defaultdict(list)
    for member in members:
        assert member.declared is not None
        sizes[member.declared.world_size].append(member)
    return sizes


def _may_go_on_alone(view: JobView, processes: list[Member], alone: list[Member]) -> bool:
    """Return True if members of worlds of size 1 may go on.

    Nobody else may still come and declare that they belong together, or nobody has come for SETTLE_S.
    """
    if view.launched <= 1 or not any(m.in_user_code for m in processes):
        return True
    return view.now - max(m.phase_since for m in alone) >= SETTLE_S


def _group_by_place(members: Iterable[Member], merge: bool) -> list[list[Member]]:
    places: dict[object, list[Member]] = defaultdict(list)
    for member in members:
        assert member.declared is not None
        if member.alive or member.phase >= Phase.ARRIVED:
            places[(member.worker, member.declared.place)].append(member)
    groups: list[list[Member]] = []
    for members_here in places.values():
        # One job in which a member has a wrong address: same world size, no rank in common, not complete.
        completable = next((g for g in groups if merge and _may_complete(g, members_here)), None)
        if completable is None:
            groups.append(list(members_here))
        else:
            completable += members_here
    return groups


def _may_complete(group: list[Member], newcomers: list[Member]) -> bool:
    sizes = {m.declared.world_size for m in group + newcomers if m.declared is not None}
    ranks = [m.declared.rank for m in group + newcomers if m.declared is not None]
    return len(sizes) == 1 and len(set(ranks)) == len(ranks) and len(group) < max(sizes)
