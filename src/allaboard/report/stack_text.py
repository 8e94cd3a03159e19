"""Stacks of many ranks for people: one line a place, or the whole tree."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Branch, Crowd
from allaboard.facts.diagnosis import walk_branches
from allaboard.facts.rank_sets import MAX_SHOWN_RANGES, describe_ranks, format_ranges
from allaboard.report.plain_text import clean

MAX_SHOWN_LINES = 200
"""Lines before the rest is counted."""
MAX_RANKS_LENGTH = 100
"""Characters of a set of ranks before it is cut."""


def crowd_lines(crowds: Iterable[Crowd]) -> list[str]:
    """Return one line a place; outliers are marked by ``>``."""
    lines = [clean(_crowd_line(c)) for c in crowds]
    hidden_count = len(lines) - MAX_SHOWN_LINES
    return (
        [*lines[:MAX_SHOWN_LINES], f"... and {hidden_count} more places"]
        if hidden_count > 0
        else lines
    )


def _crowd_line(crowd: Crowd) -> str:
    ranks = crowd.ranks
    rank_count = crowd.count - len(crowd.others)
    if len(ranks) > MAX_RANKS_LENGTH:
        ranks = ranks[:MAX_RANKS_LENGTH].rpartition(",")[0] + f",... ({rank_count} in all)"
    world = f" of {crowd.world}" if crowd.world else ""
    named = describe_ranks(ranks, rank_count, crowd.others)
    if crowd.tasks:
        hidden = len(crowd.tasks) - MAX_SHOWN_RANGES
        named = ", ".join(crowd.tasks[:MAX_SHOWN_RANGES]) + (
            f" and {hidden} more" if hidden > 0 else ""
        )
    members = f"{'> ' if crowd.odd else '  '}{named}{world}"
    if crowd.why:
        return f"{members}: {crowd.why}"
    location = f" at {crowd.at}" if crowd.at else ""
    return f"{members}: {crowd.doing}{location}" + (f", in {crowd.inside}" if crowd.inside else "")


def tree_lines(branches: Iterable[Branch]) -> list[str]:
    """Return the merged tree, outermost call first, indented where ranks part."""
    lines: list[str] = []
    for depth, branch in walk_branches(branches):
        for position, call in enumerate(branch.calls):
            head = f"[{_branch_members(branch)}] " if position == 0 else "  "
            lines.append(clean(f"{'  ' * depth}{head}{call}"))
    hidden_count = len(lines) - MAX_SHOWN_LINES
    return (
        [*lines[:MAX_SHOWN_LINES], f"... and {hidden_count} more calls"]
        if hidden_count > 0
        else lines
    )


def _branch_members(branch: Branch) -> str:
    unranked = branch.others[:MAX_SHOWN_RANGES]
    hidden_count = len(branch.others) - len(unranked)
    ranks = [format_ranges(branch.ranks)] if branch.ranks else []
    more = f" and {hidden_count} more" if hidden_count else ""
    world = f" of {branch.world}" if branch.world else ""
    return ", ".join([*ranks, *unranked]) + more + world


def all_stacks_lines(branches: Iterable[Branch]) -> list[str]:
    """Return the merged tree of all members' last stacks under a heading; [] if there are no stacks."""
    lines = tree_lines(branches)
    return ["  stacks of all ranks:", *(f"    {line}" for line in lines)] if lines else []
