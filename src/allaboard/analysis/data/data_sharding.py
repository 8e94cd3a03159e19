"""How the ranks went through their data, side by side: by place, pass and batch.

Only what is of the same place and the same pass is compared; a loader that one rank alone goes through, to
evaluate or to warm up, is compared with nobody.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec

from allaboard.facts import Batch, Frame, JobView, Loop, Member, Pace
from allaboard.facts.collective_calls import GroupState
from allaboard.facts.memo import cached_per_view
from allaboard.facts.samples import member, signature

DDP = "DDP backward"
SEEN = 3
"""Batches that must have been looked at on every rank."""


class Uneven(msgspec.Struct, frozen=True, kw_only=True):
    """In pass ``pass_`` at ``place``, ``fewer`` came to the end of their data after ``least`` batches;
    ``more`` have had the number beside them, and may still go on."""

    place: Frame
    pass_: int
    least: int
    fewer: tuple[Member, ...]
    more: tuple[tuple[Member, int], ...]


@cached_per_view
def uneven(view: JobView) -> Uneven | None:
    """The first pass in which ranks had different numbers of batches; None where none is known."""
    for place, loops in _by_place(view).items():
        ended = [(m, p) for m, p in loops if p.whole and p.ended]
        for pass_ in sorted({p.ended for _, p in ended}):
            whole = {m.called: p.whole for m, p in ended if p.ended == pass_}
            had = [(m, _had(p, pass_)) for m, p in loops]
            least = min(whole.values())
            more = tuple((m, n) for m, n in had if n > least)
            if more:
                fewer = tuple(m for m, _ in loops if whole.get(m.called) == least)
                return Uneven(place=place, pass_=pass_, least=least, fewer=fewer, more=more)
    return None


def _had(loop: Loop, pass_: int) -> int:
    """How many batches it had in that pass, as far as is known."""
    if loop.ended == pass_:
        return loop.whole
    return loop.batches if loop.pass_ == pass_ else 0


class Side(NamedTuple):
    """The same batch of every rank, ``batches`` in the order of the members; ``last``: it may be the
    last of its pass, which may be smaller by right."""

    place: Frame
    batches: tuple[Batch, ...]
    last: bool


@cached_per_view
def side_by_side(view: JobView) -> dict[Frame, tuple[Side, ...]]:
    """What was looked at on every member of a job whose gradients are averaged over all of them, in
    loops that train: there was a step between one batch and the next."""
    members = tuple(m for m in view.alive if not m.launcher)
    if len(members) < 2 or not any(_averages(m, len(members)) for m in members):
        return {}
    found = {}
    for place, loops in _by_place(view).items():
        if len(loops) < len(members) or not all(_trains(p) for _, p in loops):
            continue
        known = [{(b.pass_, b.number): b for b in p.samples} for _, p in loops]
        shared = sorted(set.intersection(*(set(k) for k in known)))
        most = {k: min(_had(p, k[0]) for _, p in loops) for k in shared}
        found[place] = tuple(
            Side(place, tuple(b[k] for b in known), k[1] >= most[k]) for k in shared
        )
    return found


def _averages(member: Member, size: int) -> bool:
    """Whether its last call is DDP's, over everybody: members that share out one model may well read
    the same data."""
    return any(s.size == size and s.last is not None and s.last.op == DDP for s in member.groups)


def _trains(loop: Loop) -> bool:
    steps = [b.steps for b in loop.samples if b.pass_ == loop.pass_]
    return len(set(steps)) >= min(2, len(steps))


def _by_place(view: JobView) -> dict[Frame, list[tuple[Member, Loop]]]:
    found: dict[Frame, list[tuple[Member, Loop]]] = defaultdict(list)
    for one in view.members:
        for loop in one.loops:
            found[loop.place].append((one, loop))
    return found


PLACE = Frame("/home/u/train.py", 30, "train")


def reading(rank: int, *digests: int, rows: int = 8, size: int = 3, **changes: Any) -> Member:
    """A member for rules' examples: it trains with DDP and has had these batches in its first pass."""
    samples = tuple(Batch(1, n, rows, d, n + 10) for n, d in enumerate(digests, 1))
    group = GroupState("0", 1, 40, 90.0, size, last=signature(DDP))
    loop = Loop(PLACE, 1, len(digests) + 1, samples=samples)
    fields = {"groups": (group,), "loops": (loop,), "pace": Pace()} | changes
    return member(rank, **fields)
