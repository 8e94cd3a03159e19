"""What may be assumed of members that have no black box: how far they got, and what they were told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.configuration.launcher_context import described
from allaboard.facts import Declared, Member, Phase, Present

THROUGH = (Spot.GROUP, Spot.COLLECTIVE)
"""Where only those are who have been through the init: a moment ago, if another one is about to leave it."""


def assumed(people: Sequence[Present], since: float) -> tuple[Member, ...]:
    """The members with a phase. Where some wait in a framework's init for one that is not there, or
    is elsewhere, these stand at its door (since ``since`` at least, s) and the others have not come;
    else, and where one is through, all of them count as training: their places are then compared."""
    inside = [p for p in people if spot(p.member.stack) is Spot.INIT]
    told = [_declared(p) for p in people]
    size = max((d.world_size for d in told if d is not None), default=0)
    ranks = {d.rank for d in told if d is not None}
    waited_for = len(inside) < len(people) or len(ranks) < min(size, 1_000_000)
    through = any(spot(p.member.stack) in THROUGH for p in people)
    if not inside or through or not waited_for:
        return tuple(p.member for p in people)
    found = []
    for person, declared in zip(people, told, strict=True):
        arrived = person in inside and declared is not None
        found.append(
            msgspec.structs.replace(
                person.member,
                phase=Phase.ARRIVED if arrived else Phase.IMPORTED,
                phase_since=since,
                declared=declared if arrived else None,
            )
        )
    return tuple(found)


def absent(people: Sequence[Present]) -> tuple[int, list[int]]:
    """The world size that they were told, and the ranks of it that nobody here is."""
    told = [d for p in people if (d := _declared(p)) is not None]
    size = max((d.world_size for d in told), default=0)
    seen = {d.rank for d in told}
    return size, sorted(set(range(min(size, 1_000_000))) - seen) if seen else []


def _declared(person: Present) -> Declared | None:
    """As its environment says it; what the script passes to init by itself is not known."""
    variables, who = person.variables, person.member.who
    cluster = _tasks(variables.get("TF_CONFIG", ""))
    sizes = (variables.get(n, "") for n in ("WORLD_SIZE", "JAX_NUM_PROCESSES"))
    size = len(cluster) or next((int(s) for s in sizes if s.isdigit()), 0)
    seen = described(variables)
    if seen is None or who.rank < 0 or size < 2:
        return None
    return Declared(
        framework="tensorflow" if cluster else "torch" if "WORLD_SIZE" in variables else "jax",
        call="init",
        rank=seen.rank if cluster else who.rank,
        world_size=size,
        place=f"tcp://{seen.address}" if seen.address and not cluster else "",
        cluster=cluster,
        origin="environment",
    )


def _tasks(text: str) -> dict[str, str]:
    """``worker:0`` to its address, of those who train."""
    try:
        cluster = msgspec.json.decode(text)["cluster"]
        return {
            f"{job}:{i}": str(address)
            for job in ("chief", "worker")
            for i, address in enumerate(cluster.get(job, ()))
        }
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        KeyError,
        TypeError,
        AttributeError,
    ):
        return {}
