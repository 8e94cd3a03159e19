"""Stacks of many ranks for people: one line a place, or the whole tree."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Branch, Crowd
from allaboard.facts.diagnosis import walk_branches
from allaboard.facts.rank_sets import MAX_SHOWN_RANGES, describe_ranks, format_ranges
from allaboard.report.plain_text import clean

LINES = 200
"""Lines before the rest is counted."""
RANKS = 100
"""Characters of a set of ranks before it is cut."""


def crowd_lines(crowds: Iterable[Crowd]) -> list[str]:
    """One line a place; the odd ones out are marked by ``>``."""
    lines = [clean(_crowd(c)) for c in crowds]
    left = len(lines) - LINES
    return [*lines[:LINES], f"... and {left} more places"] if left > 0 else lines


def _crowd(crowd: Crowd) -> str:
    ranks = crowd.ranks
    known = crowd.count - len(crowd.others)
    if len(ranks) > RANKS:
        ranks = ranks[:RANKS].rpartition(",")[0] + f",... ({known} in all)"
    who = f"{'> ' if crowd.odd else '  '}{describe_ranks(ranks, known, crowd.others)}"
    if crowd.why:
        return f"{who}: {crowd.why}"
    at = f" at {crowd.at}" if crowd.at else ""
    return f"{who}: {crowd.doing}{at}" + (f", in {crowd.inside}" if crowd.inside else "")


def tree_lines(branches: Iterable[Branch]) -> list[str]:
    """The tree, outermost call first; indented where ranks part."""
    lines: list[str] = []
    for depth, branch in walk_branches(branches):
        for at, call in enumerate(branch.calls):
            head = f"[{_whose(branch)}] " if at == 0 else "  "
            lines.append(clean(f"{'  ' * depth}{head}{call}"))
    left = len(lines) - LINES
    return [*lines[:LINES], f"... and {left} more calls"] if left > 0 else lines


def _whose(branch: Branch) -> str:
    more = branch.others[:MAX_SHOWN_RANGES]
    rest = len(branch.others) - len(more)
    named = [format_ranges(branch.ranks)] if branch.ranks else []
    return ", ".join([*named, *more]) + (f" and {rest} more" if rest else "")


def all_stacks_lines(branches: Iterable[Branch]) -> list[str]:
    """Return the merged tree of all members' last stacks under a heading; [] if there are no stacks."""
    lines = tree_lines(branches)
    return ["  stacks of all ranks:", *(f"    {line}" for line in lines)] if lines else []
