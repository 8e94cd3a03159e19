"""Reports of NCCL's watchdogs compared between ranks.

They show who never called a collective, who is behind, who called another collective, or that all were
waiting. A watchdog reports a collective that was not finished in time. Numbers count one group's collectives
from 1, as ProcessGroupNCCL does (``seqCollective_``). "Enqueued" means that the rank's Python has called the
collective, "completed" that its GPU has finished it.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from allaboard.facts import Certainty, Overdue, Watchdogs
from allaboard.facts.memo import cached_per_view

OWN_NUMBER_PREFIX = "id "
"""Prefix of the name of a group that is known only by a rank's own number for it. Older releases of PyTorch
write no other name, and the number differs between ranks if not all ranks make all groups."""
EQUAL_SIZE_OPS = {
    "ALLREDUCE",
    "BROADCAST",
    "REDUCE",
    "_REDUCE_SCATTER_BASE",
    "_ALLGATHER_BASE",
    "BARRIER",
}
"""Operations in which each rank passes and receives as many elements as its peers; lists may be uneven."""
POINT_TO_POINT_OPS = {"SEND", "RECV", "COALESCED", "UNKNOWN"}
"""Operations between two ranks; the numbers of the other ranks prove nothing about them."""


class LateRanks(msgspec.Struct, frozen=True):
    """Ranks for which the others waited."""

    ranks: tuple[int, ...]
    """The late ranks."""
    waiting: tuple[int, ...]
    """Ranks that waited for them."""
    waiting_report: Overdue
    """Report of one of the waiting ranks."""
    late_report: Overdue
    """Report of the first of the late ranks."""
    was_called: bool
    """False if the late ranks never called the collective; True if they called it, but did not finish it."""


class UnequalCalls(msgspec.Struct, frozen=True):
    """A collective of a group in which not all ranks called the same operation."""

    sides: tuple[tuple[tuple[int, ...], Overdue], ...]
    """The ranks of each side with one of its reports, the largest side first."""
    outliers: tuple[int, ...]
    """Ranks that differ from the majority; all ranks if there is no majority."""


class AllWaiting(msgspec.Struct, frozen=True):
    """A group of which all known ranks waited in the same collective, so that none of them was missing."""

    ranks: tuple[int, ...]
    """All ranks of the group that reported."""
    report: Overdue
    """Report of one of them."""


@cached_per_view
def compare_watchdogs(watchdogs: Watchdogs) -> tuple[LateRanks | UnequalCalls | AllWaiting, ...]:
    """Return a verdict on each group whose reports allow one."""
    groups: dict[str, list[Overdue]] = defaultdict(list)
    for report in sorted(watchdogs.reports, key=lambda o: o.rank):
        if report.rank >= 0:
            groups[report.group].append(report)
    # A known rank without a report may be the missing one, so "all were waiting" needs all reports.
    silent = set(watchdogs.ranks) - {o.rank for o in watchdogs.reports if o.number}
    verdicts = (_judge_group(reports, not silent) for reports in groups.values())
    return tuple(v for v in verdicts if v is not None)


def _judge_group(
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
    """Return the ranks that never called what others wait for; of several, those furthest behind."""
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
    """Return the ranks whose GPUs have not finished what the GPUs of all others have completed."""
    least = min(o.number for o in waiting)
    ahead = [o for o in waiting if o.completed >= least]
    late = [o for o in waiting if o.number == least]
    if not ahead or len(late) + len(ahead) < len(waiting):
        return None
    return LateRanks(_sorted_ranks(late), _sorted_ranks(ahead), ahead[0], late[0], was_called=True)


def _find_all_waiting(reports: list[Overdue], waiting: list[Overdue]) -> AllWaiting | None:
    """Return that all ranks waited in the same collective, or None.

    This requires a report of every rank of the group: a rank without a report may be the missing one.
    """
    numbers = {o.number for o in waiting}
    members = sorted(o.member for o in waiting)
    if len(numbers) > 1 or len(waiting) < len(reports) or members != list(range(len(members))):
        return None
    return AllWaiting(_sorted_ranks(waiting), waiting[0])


def watchdog_certainty(report: Overdue) -> Certainty:
    """Return how certain a verdict is: only a group's global name proves that all reports are about it."""
    return Certainty.LIKELY if report.group.startswith(OWN_NUMBER_PREFIX) else Certainty.CERTAIN


def describe_overdue(report: Overdue) -> str:
    """Return the collective as a person would write it: "ALLREDUCE of 1024 elements".

    The number of elements of the output follows if it differs.
    """
    into, out = report.elements
    return f"{report.op} of {into} elements" + (f" into {out}" if out != into else "")


def _sorted_ranks(reports: list[Overdue]) -> tuple[int, ...]:
    return tuple(sorted(o.rank for o in reports))
