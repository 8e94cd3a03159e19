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

OWN_NUMBER_PREFIX = "id "
"""What begins the name of a group of which only a rank's own number is told: older releases wrote no other,
and where not all ranks make all groups it is not the same on all."""
EQUAL_SIZE_OPS = {
    "ALLREDUCE",
    "BROADCAST",
    "REDUCE",
    "_REDUCE_SCATTER_BASE",
    "_ALLGATHER_BASE",
    "BARRIER",
}
"""Operations of which each rank gives and gets as many elements as its peers; lists may be uneven."""
POINT_TO_POINT_OPS = {"SEND", "RECV", "COALESCED", "UNKNOWN"}
"""What two ranks do; the others' numbers say nothing about it."""


class LateRanks(msgspec.Struct, frozen=True):
    """``ranks`` never called the collective that ``waiting`` waited for, or, where ``called``, did not get
    through an earlier one that the others have completed. ``first`` is one of those that waited, ``last``
    what the first of ``ranks`` wrote."""

    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    waiting_report: Overdue
    late_report: Overdue
    was_called: bool


class UnequalCalls(msgspec.Struct, frozen=True):
    """At one number not all called the same: one entry of each side, the largest first; ``odd`` are those
    that differ from more than half, all where there is no such majority."""

    sides: tuple[tuple[tuple[int, ...], Overdue], ...]
    outliers: tuple[int, ...]


class AllWaiting(msgspec.Struct, frozen=True):
    """All ``ranks`` of which anything is known waited in the same collective: nobody of them is missing."""

    ranks: tuple[int, ...]
    report: Overdue


@cached_per_view
def compare_watchdogs(watchdogs: Watchdogs) -> tuple[LateRanks | UnequalCalls | AllWaiting, ...]:
    """One verdict a group, where its words allow one."""
    groups: dict[str, list[Overdue]] = defaultdict(list)
    for report in sorted(watchdogs.words, key=lambda o: o.rank):
        if report.rank >= 0:
            groups[report.group].append(report)
    silent = set(watchdogs.known) - {o.rank for o in watchdogs.words if o.number}
    verdicts = (_verdict(reports, not silent) for reports in groups.values())
    return tuple(v for v in verdicts if v is not None)


def _verdict(
    reports: list[Overdue], all_spoke: bool
) -> LateRanks | UnequalCalls | AllWaiting | None:
    waiting = [o for o in reports if o.number and o.op and o.op not in POINT_TO_POINT_OPS]
    if len(reports) < 2 or not waiting:
        return None
    absent = _find_absent(reports, waiting) or _find_unfinished(waiting)
    return (
        _find_unequal_calls(waiting)
        or absent
        or (_find_all_waiting(reports, waiting) if all_spoke else None)
    )


def _find_unequal_calls(waiting: list[Overdue]) -> UnequalCalls | None:
    reports_at: dict[int, list[Overdue]] = defaultdict(list)
    for report in waiting:
        reports_at[report.number].append(report)
    for number in sorted(reports_at):
        sides: dict[object, list[Overdue]] = defaultdict(list)
        for report in reports_at[number]:
            sides[
                (report.op, report.elements) if report.op in EQUAL_SIZE_OPS else report.op
            ].append(report)
        if len(sides) > 1:
            ordered = sorted(sides.values(), key=len, reverse=True)
            has_majority = len(ordered[0]) * 2 > len(reports_at[number])
            outliers = [o.rank for side in (ordered[1:] if has_majority else ordered) for o in side]
            described_sides = tuple((tuple(o.rank for o in side), side[0]) for side in ordered)
            return UnequalCalls(described_sides, tuple(sorted(outliers)))
    return None


def _find_absent(reports: list[Overdue], waiting: list[Overdue]) -> LateRanks | None:
    """Who never called what others wait for, and of those who is furthest behind."""
    number = max(o.number for o in waiting)
    late = [o for o in reports if not o.number and o.enqueued < number]
    if not late:
        return None
    least = min(o.enqueued for o in late)
    furthest_behind = [o for o in late if o.enqueued == least]
    ahead = [o for o in waiting if o.number > least]
    waited_for = min(ahead, key=lambda o: o.number)
    return LateRanks(
        _sorted_ranks(furthest_behind),
        _sorted_ranks(ahead),
        waited_for,
        furthest_behind[0],
        was_called=False,
    )


def _find_unfinished(waiting: list[Overdue]) -> LateRanks | None:
    """Whose GPU is not through with what the others' have completed."""
    least = min(o.number for o in waiting)
    ahead = [o for o in waiting if o.completed >= least]
    late = [o for o in waiting if o.number == least]
    if not ahead or len(late) + len(ahead) < len(waiting):
        return None
    return LateRanks(_sorted_ranks(late), _sorted_ranks(ahead), ahead[0], late[0], was_called=True)


def _find_all_waiting(reports: list[Overdue], waiting: list[Overdue]) -> AllWaiting | None:
    """Only where no number is left out within the group: who wrote nothing may be the one that is missing."""
    numbers = {o.number for o in waiting}
    members = sorted(o.member for o in waiting)
    if len(numbers) > 1 or len(waiting) < len(reports) or members != list(range(len(members))):
        return None
    return AllWaiting(_sorted_ranks(waiting), waiting[0])


def watchdog_certainty(report: Overdue) -> Certainty:
    """What the words prove: only a group's global name makes them those of one group."""
    return Certainty.LIKELY if report.group.startswith(OWN_NUMBER_PREFIX) else Certainty.CERTAIN


def describe_overdue(report: Overdue) -> str:
    """The collective as a person would write it: ``ALLREDUCE of 1024 elements``; with what came out, where
    that is another number."""
    into, out = report.elements
    return f"{report.op} of {into} elements" + (f" into {out}" if out != into else "")


def _sorted_ranks(reports: list[Overdue]) -> tuple[int, ...]:
    return tuple(sorted(o.rank for o in reports))
