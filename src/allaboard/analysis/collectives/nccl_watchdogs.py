"""The words of NCCL's watchdogs, compared between ranks: who did not come, who is behind, who called another
collective, or that all were there. Pure.

A watchdog speaks where a collective was not over in time. Numbers count one group's collectives from 1,
as ProcessGroupNCCL does (``seqCollective_``); enqueued means that the rank's Python has called it, completed
that its GPU is through with it.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.facts import Certainty, Overdue, Watchdogs
from allaboard.facts.memo import cached_per_view

OWN_NUMBER = "id "
"""What begins the name of a group of which only a rank's own number is told: older releases wrote no other,
and where not all ranks make all groups it is not the same on all."""
SAME_SIZES = {
    "ALLREDUCE",
    "BROADCAST",
    "REDUCE",
    "_REDUCE_SCATTER_BASE",
    "_ALLGATHER_BASE",
    "BARRIER",
}
"""Operations of which each rank gives and gets as many elements as its peers; lists may be uneven."""
POINT_TO_POINT = {"SEND", "RECV", "COALESCED", "UNKNOWN"}
"""What two ranks do; the others' numbers say nothing about it."""


class Late(msgspec.Struct, frozen=True):
    """``ranks`` never called the collective that ``waiting`` waited for, or, where ``called``, did not get
    through an earlier one that the others have completed. ``first`` is one of those that waited, ``last``
    what the first of ``ranks`` wrote."""

    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    first: Overdue
    last: Overdue
    called: bool


class Unequal(msgspec.Struct, frozen=True):
    """At one number not all called the same: one entry of each side, the largest first; ``odd`` are those
    that differ from more than half, all where there is no such majority."""

    sides: tuple[tuple[tuple[int, ...], Overdue], ...]
    odd: tuple[int, ...]


class Complete(msgspec.Struct, frozen=True):
    """All ``ranks`` of which anything is known waited in the same collective: nobody of them is missing."""

    ranks: tuple[int, ...]
    first: Overdue


@cached_per_view
def compared(found: Watchdogs) -> tuple[Late | Unequal | Complete, ...]:
    """One verdict a group, where its words allow one."""
    groups: dict[str, list[Overdue]] = defaultdict(list)
    for one in sorted(found.words, key=lambda o: o.rank):
        if one.rank >= 0:
            groups[one.group].append(one)
    silent = set(found.known) - {o.rank for o in found.words if o.number}
    verdicts = (_verdict(words, not silent) for words in groups.values())
    return tuple(v for v in verdicts if v is not None)


def _verdict(words: list[Overdue], all_spoke: bool) -> Late | Unequal | Complete | None:
    waiting = [o for o in words if o.number and o.op and o.op not in POINT_TO_POINT]
    if len(words) < 2 or not waiting:
        return None
    absent = _absent(words, waiting) or _behind(waiting)
    return _unequal(waiting) or absent or (_all(words, waiting) if all_spoke else None)


def _unequal(waiting: list[Overdue]) -> Unequal | None:
    at: dict[int, list[Overdue]] = defaultdict(list)
    for one in waiting:
        at[one.number].append(one)
    for number in sorted(at):
        sides: dict[object, list[Overdue]] = defaultdict(list)
        for one in at[number]:
            sides[(one.op, one.elements) if one.op in SAME_SIZES else one.op].append(one)
        if len(sides) > 1:
            ordered = sorted(sides.values(), key=len, reverse=True)
            clear = len(ordered[0]) * 2 > len(at[number])
            odd = [o.rank for side in (ordered[1:] if clear else ordered) for o in side]
            told = tuple((tuple(o.rank for o in side), side[0]) for side in ordered)
            return Unequal(told, tuple(sorted(odd)))
    return None


def _absent(words: list[Overdue], waiting: list[Overdue]) -> Late | None:
    """Who never called what others wait for, and of those who is furthest behind."""
    number = max(o.number for o in waiting)
    late = [o for o in words if not o.number and o.enqueued < number]
    if not late:
        return None
    least = min(o.enqueued for o in late)
    last = [o for o in late if o.enqueued == least]
    there = [o for o in waiting if o.number > least]
    first = min(there, key=lambda o: o.number)
    return Late(_ranks(last), _ranks(there), first, last[0], called=False)


def _behind(waiting: list[Overdue]) -> Late | None:
    """Whose GPU is not through with what the others' have completed."""
    least = min(o.number for o in waiting)
    there = [o for o in waiting if o.completed >= least]
    late = [o for o in waiting if o.number == least]
    if not there or len(late) + len(there) < len(waiting):
        return None
    return Late(_ranks(late), _ranks(there), there[0], late[0], called=True)


def _all(words: list[Overdue], waiting: list[Overdue]) -> Complete | None:
    """Only where no number is left out within the group: who wrote nothing may be the one that is missing."""
    there = {o.number for o in waiting}
    members = sorted(o.member for o in waiting)
    if len(there) > 1 or len(waiting) < len(words) or members != list(range(len(members))):
        return None
    return Complete(_ranks(waiting), waiting[0])


def certainty(one: Overdue) -> Certainty:
    """What the words prove: only a group's global name makes them those of one group."""
    return Certainty.LIKELY if one.group.startswith(OWN_NUMBER) else Certainty.CERTAIN


def described(one: Overdue) -> str:
    """The collective as a person would write it: ``ALLREDUCE of 1024 elements``; with what came out, where
    that is another number."""
    into, out = one.elements
    return f"{one.op} of {into} elements" + (f" into {out}" if out != into else "")


def _ranks(words: list[Overdue]) -> tuple[int, ...]:
    return tuple(sorted(o.rank for o in words))
