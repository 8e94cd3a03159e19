"""Assumptions about members without a black box: how far they got, and what their environment says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.configuration import resolve
from allaboard.configuration.launcher_context import read_launcher_context
from allaboard.facts import ClusterSpec, Declared, Member, Phase, Present

SPOTS_AFTER_INIT = (Spot.GROUP, Spot.COLLECTIVE)
"""Places that only a process past the init can be at: a moment ago, if another one is about to leave it."""


def assume_phases(present: Sequence[Present], since: float) -> tuple[Member, ...]:
    """Return the members with a phase.

    If some wait in a framework's init for one that is missing or elsewhere, or they cannot meet, these are
    arriving (since ``since`` at least, s) and the others have not come. Otherwise, and if one is past the
    init, all count as training: their places are then compared.
    """
    in_init = [p for p in present if classify_stack(p.member.stack) is Spot.INIT]
    declarations = [_declared(p) for p in present]
    size = max((d.world_size for d in declarations if d is not None), default=0)
    ranks = {d.rank for d in declarations if d is not None}
    someone_is_missing = (
        len(in_init) < len(present)
        or len(ranks) < min(size, 1_000_000)
        or _contradict(declarations)
    )
    is_past_init = any(classify_stack(p.member.stack) in SPOTS_AFTER_INIT for p in present)
    if not in_init or is_past_init or not someone_is_missing:
        return tuple(_with_role(p.member) for p in present)
    joined = [d for p, d in zip(present, declarations, strict=True) if p not in in_init]
    is_second_start = _is_whole_world(joined)
    members = []
    for person, declared in zip(present, declarations, strict=True):
        arrived = person in in_init and declared is not None
        if is_second_start and person not in in_init:
            # They are through their init: who waits in it now has come to the place of another job.
            members.append(msgspec.structs.replace(person.member, declared=declared))
            continue
        members.append(
            msgspec.structs.replace(
                person.member,
                phase=Phase.ARRIVED if arrived else Phase.IMPORTED,
                phase_since=since,
                declared=declared if arrived else None,
            )
        )
    return tuple(members)


def _is_whole_world(declarations: Sequence[Declared | None]) -> bool:
    """Return True if these members are all ranks of the world that they declare, each once."""
    stated = [d for d in declarations if d is not None]
    sizes = {d.world_size for d in stated}
    return (
        len(stated) == len(declarations)
        and sizes == {len(stated)}
        and len({d.rank for d in stated}) == len(stated)
    )


def _with_role(member: Member) -> Member:
    """Return the member, as one that only serves if it is in a server's loop: nothing else states that."""
    serves = classify_stack(member.stack) is Spot.SERVER
    return msgspec.structs.replace(member, serving=True) if serves else member


def _contradict(declarations: Sequence[Declared | None]) -> bool:
    """Return True if the members cannot meet: they expect other world sizes, or go to other ports.

    Of hosts, two names may be one.
    """
    stated = [d for d in declarations if d is not None]
    sizes = {d.world_size for d in stated}
    ports = {d.place.rpartition(":")[2] for d in stated if d.place}
    return len(sizes) > 1 or len(ports) > 1


def absent_ranks(present: Sequence[Present]) -> tuple[int, list[int]]:
    """Return the world size by the environments, and its ranks that no process here has."""
    declarations = [d for p in present if (d := _declared(p)) is not None]
    size = max((d.world_size for d in declarations), default=0)
    ranks_present = {d.rank for d in declarations}
    # The size is what an environment says: a set of any size must not be made of it.
    return size, sorted(set(range(min(size, 1_000_000))) - ranks_present) if ranks_present else []


def _declared(person: Present) -> Declared | None:
    """Return what the environment declares; what the script itself passes to init is not known."""
    variables, who = person.stated, person.member.who
    spec = resolve(variables)
    tasks = ((job, i, address.text) for job, i, address in spec.ranked_tasks)
    cluster = {f"{job}:{i}": text for job, i, text in tasks if job in ("chief", "worker")}
    if person.trains_without_tensorflow:
        cluster = {}
    size = len(cluster) or _size_for_framework(spec)
    context = read_launcher_context(variables)
    if context is None or who.rank < 0 or size < 2:
        return None
    return Declared(
        framework="tensorflow" if cluster else "torch" if "WORLD_SIZE" in variables else "jax",
        call="init",
        rank=spec.rank if cluster else who.rank,
        world_size=size,
        place=f"tcp://{context.address}" if context.address and not cluster else "",
        cluster=cluster,
        origin="arguments"
        if {"WORLD_SIZE", "JAX_NUM_PROCESSES"} & person.arguments.keys()
        else "environment",
    )


def _size_for_framework(spec: ClusterSpec) -> int:
    """Return the world size that a framework's own variable states; 0 if none does.

    A launcher's count is not enough: a single process in a batch script has SLURM_NTASKS, too.
    """
    size = spec.values.get("world_size")
    stated = size is not None and size.origin.variable in ("WORLD_SIZE", "JAX_NUM_PROCESSES")
    return spec.world_size if stated else 0
