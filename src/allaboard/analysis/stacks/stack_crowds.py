"""The places of all ranks as reports show them: one entry (a crowd) per place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from allaboard.analysis.member_names import goes_by_task
from allaboard.analysis.stacks.outliers import find_outliers
from allaboard.analysis.stacks.stack_groups import StackGroup, StackGroups
from allaboard.analysis.stacks.unranked_processes import (
    FIRST_UNRANKED_NUMBER,
    names_of_unranked,
    only_ranks,
)
from allaboard.facts import Crowd, Frame, Member, Who
from allaboard.facts.rank_sets import format_ranks


def number_unranked_members(members: Iterable[Member]) -> dict[int, Who]:
    """Return the members without a known rank by a number of their own, as `Dumps` has them."""
    unranked = [m for m in members if m.who.rank < 0]
    hosts = {m.who.host for m in unranked}
    return {
        FIRST_UNRANKED_NUMBER + m.worker: Who(
            job="process", index=-1, pid=m.who.pid, host=m.who.host if len(hosts) > 1 else ""
        )
        for m in unranked
    }


def group_member_stacks(
    members: Iterable[Member], unnamed: Mapping[int, Who] | None = None
) -> StackGroups:
    """Return the last stacks of these members, grouped.

    Members without a known rank go by their number in ``unnamed``, else by their worker's number.
    """
    groups = StackGroups()
    for member in members:
        if not member.launcher:
            number = member.who.rank if member.who.rank >= 0 else member.worker
            if member.who.rank < 0 and FIRST_UNRANKED_NUMBER + member.worker in (unnamed or {}):
                number = FIRST_UNRANKED_NUMBER + member.worker
            groups.add(number, member.stack.frames if member.stack is not None else ())
    return groups


def task_names(members: Iterable[Member]) -> dict[int, str]:
    """Return the names of the members' tasks by rank; {} if their numbers are those of the ranks."""
    all_members = [m for m in members if m.who.rank >= 0]
    if not any(map(goes_by_task, all_members)):
        return {}
    return {m.who.rank: m.who.name for m in all_members}


def make_crowds(
    groups: Iterable[StackGroup],
    unnamed: Mapping[int, Who] | None = None,
    tasks: Mapping[int, str] | None = None,
) -> tuple[Crowd, ...]:
    """Return every place with its ranks, largest first; ``unnamed`` as for `Dumps`, ``tasks`` as `task_names`
    returns them."""
    group_list = list(groups)
    outlying = find_outliers(group_list).outliers
    return tuple(_make_crowd(g, g in outlying, unnamed or {}, tasks or {}) for g in group_list)


def _make_crowd(
    group: StackGroup, is_outlier: bool, unnamed: Mapping[int, Who], tasks: Mapping[int, str]
) -> Crowd:
    leaf, user = group.frames[0] if group.frames else None, group.user
    return Crowd(
        ranks=format_ranks(only_ranks(group.ranks), len(group.ranks)),
        count=len(group.ranks),
        doing=str(group.spot),
        at=str(user or ""),
        inside=leaf.function if leaf is not None and leaf is not user else "",
        odd=is_outlier,
        calls=tuple(_format_call(f) for f in group.frames),
        why=group.why,
        others=names_of_unranked(group.ranks, unnamed),
        tasks=tuple(tasks[r] for r in group.ranks if r in tasks),
    )


def _format_call(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} in {frame.function}"
