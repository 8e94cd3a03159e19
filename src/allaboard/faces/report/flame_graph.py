"""Merged stacks as a flame graph: outermost calls at the top, each as wide as its number of ranks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Branch, Frame
from allaboard.facts.diagnosis import walk_branches
from allaboard.facts.rank_sets import describe_ranks, format_ranges

ROW_HEIGHT = 22
MAX_BOXES = 3000
"""Calls that are drawn; deeper ones are counted."""


class CallBox(msgspec.Struct, frozen=True, kw_only=True):
    """One call of some ranks."""

    x: float
    """Its left edge, in percent of the width."""
    width: float
    """Its width in percent."""
    y: int
    """Its upper edge."""
    function: str
    """The function."""
    location: str
    """File and line."""
    ranks: str
    """The ranks that are in it."""
    is_own: bool
    """True for the user's own code."""
    shade: int
    """Which of four shades it has, by its function, so that one function looks the same everywhere."""


class FlameGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The whole drawing."""

    height: int
    """Its height."""
    boxes: tuple[CallBox, ...]
    """The calls."""
    left_out: int
    """Calls that are too many to be drawn."""


def lay_out_stacks(tree: Sequence[Branch]) -> FlameGraph | None:
    """Return the drawing; None if there are no stacks."""
    total = sum(branch.count for branch in tree)
    if not total:
        return None
    boxes: list[CallBox] = []
    left_out = 0
    deepest = 0
    pending = [
        (branch, left_percent, 0) for branch, left_percent in _side_by_side(tree, 0.0, total)
    ]
    while pending:
        branch, left_percent, depth = pending.pop()
        width = 100.0 * branch.count / total
        ranks = describe_ranks(
            format_ranges(branch.ranks), branch.count - len(branch.others), branch.others
        )
        for offset, call in enumerate(branch.calls):
            if len(boxes) >= MAX_BOXES:
                left_out += 1
                continue
            boxes.append(
                CallBox(
                    x=round(left_percent, 3), width=round(width, 3), y=(depth + offset) * ROW_HEIGHT,
                    function=call.function or "?", location=f"{call.file}:{call.line}", ranks=ranks,
                    is_own=call.is_user, shade=sum(call.function.encode(errors="replace")) % 4,
                )
            )  # fmt: skip
        below = depth + len(branch.calls)
        deepest = max(deepest, below)
        pending += [
            (b, left_edge, below)
            for b, left_edge in _side_by_side(branch.below, left_percent, total)
        ]
    return FlameGraph(height=deepest * ROW_HEIGHT, boxes=tuple(boxes), left_out=left_out)


def collapsed_stacks(tree: Sequence[Branch]) -> list[tuple[tuple[Frame, ...], int]]:
    """Return every stack of the tree, outermost call first, with the number of ranks that are in it."""
    calls: list[tuple[Frame, ...]] = []
    stacks: list[tuple[tuple[Frame, ...], int]] = []
    for depth, branch in walk_branches(tree):
        del calls[depth:]
        calls.append((calls[-1] if calls else ()) + branch.calls)
        # Ranks that are in no deeper call stand here.
        count = branch.count - sum(b.count for b in branch.below)
        if count > 0:
            stacks.append((calls[-1], count))
    return stacks


def _side_by_side(
    branches: Sequence[Branch], left_percent: float, total: int
) -> list[tuple[Branch, float]]:
    """Return the branches, the widest first, each with its left edge in percent."""
    placed = []
    for branch in sorted(branches, key=lambda b: -b.count):
        placed.append((branch, left_percent))
        left_percent += 100.0 * branch.count / total
    return placed
