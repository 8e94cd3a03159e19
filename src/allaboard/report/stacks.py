"""Stacks of many ranks for people: one line a place, or the whole tree."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.facts import JobView, Member
from allaboard.report.text import clean
from allaboard.stacks.groups import Group, Groups
from allaboard.stacks.outliers import outliers
from allaboard.stacks.ranks import told, written
from allaboard.stacks.tree import Branch, merge, walk

LINES = 200
"""Lines of a tree before the rest is counted."""


def groups_of(members: Iterable[Member]) -> Groups:
    """The last stacks of these members by rank; by worker number where the rank is not known."""
    groups = Groups()
    for member in members:
        if not member.launcher:
            number = member.who.rank if member.who.rank >= 0 else member.worker
            groups.add(number, member.stack.frames if member.stack is not None else ())
    return groups


def place_lines(groups: Iterable[Group]) -> list[str]:
    """One line a place, where most are first; the odd ones out are marked."""
    known = list(groups)
    odd = outliers(known).odd
    return [clean(_place(g, "> " if g in odd else "  ")) for g in known[:LINES]]


def _place(group: Group, mark: str) -> str:
    who = f"{'rank' if len(group.ranks) == 1 else 'ranks'} {told(group.ranks)}"
    if not group.frames:
        return f"{mark}{who}: {group.why}"
    user, leaf = group.user, group.frames[0]
    at = f" at {user}" if user is not None else ""
    inside = f", in {leaf.function}" if user is not leaf else ""
    return f"{mark}{who}: {group.spot}{at}{inside}"


def tree_lines(branches: Iterable[Branch]) -> list[str]:
    """The tree, outermost call first; indented where ranks part."""
    lines: list[str] = []
    left = 0
    for depth, branch in walk(branches):
        ranks = written(branch.ranks)
        for at, call in enumerate(branch.calls):
            head = f"{'  ' * depth}[{ranks}] " if at == 0 else "  " * depth + "  "
            if len(lines) < LINES:
                lines.append(clean(f"{head}{call}"))
            else:
                left += 1
    return [*lines, f"... and {left} more calls"] if left else lines


class Places(msgspec.Struct, frozen=True):
    """The stacks of a job in JSON; ranks as ``0-2,5``, calls as ``file:line in function``."""

    ranks: str
    count: int
    doing: str
    at: str
    odd: bool
    frames: tuple[str, ...]


def places(groups: Iterable[Group]) -> tuple[Places, ...]:
    """Every place for programs: all ranges, whole paths, innermost call first."""
    known = list(groups)
    odd = outliers(known).odd
    return tuple(
        Places(
            told(g.ranks, len(g.ranks)),
            len(g.ranks),
            str(g.spot),
            str(g.user or ""),
            g in odd,
            tuple(f"{f.file}:{f.line} in {f.function}" for f in g.frames),
        )
        for g in known
    )


def verbose_lines(view: JobView) -> list[str]:
    """The merged tree of all members' last stacks; nothing where nobody was looked at."""
    branches = merge(groups_of(view.members))
    return (
        ["  stacks of all ranks:", *(f"    {line}" for line in tree_lines(branches))]
        if branches
        else []
    )
