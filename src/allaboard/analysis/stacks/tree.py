"""The stacks of all ranks as one prefix tree, outermost call first, each branch with its ranks.

The form is that of LLNL's Stack Trace Analysis Tool (Arnold et al., "Stack Trace Analysis for
Large Scale Debugging", IPDPS 2007): what thousands do alike is one line.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from allaboard.analysis.stacks.groups import StackGroup
from allaboard.analysis.stacks.unranked_processes import others, ranks_of
from allaboard.facts import Branch, Frame, Who
from allaboard.facts.rank_sets import rank_ranges


class _Node:
    """``places`` are the groups that pass through; their ranks are joined only where a line is made."""

    __slots__ = ("below", "ends", "frame", "places")

    def __init__(self, frame: Frame | None) -> None:
        self.frame = frame
        self.groups: list[StackGroup] = []
        self.children: dict[Frame, _Node] = {}
        self.is_end = False


def merge(
    groups: Iterable[StackGroup], unnamed: Mapping[int, Who] | None = None
) -> tuple[Branch, ...]:
    """The tree's outermost branches, those of most ranks first. Groups without frames are left out.
    ``unnamed`` as for `Dumps`."""
    root = _Node(None)
    for group in groups:
        node = root
        for frame in reversed(group.frames):
            below = node.below.get(frame)
            if below is None:
                below = node.below[frame] = _Node(frame)
            below.places.append(group)
            node = below
        node.ends = True
    return _branches(root, unnamed or {})


def _branches(root: _Node, unnamed: Mapping[int, Who]) -> tuple[Branch, ...]:
    """Without recursion: stacks may be deeper than ours may get."""
    visited: list[tuple[_Node, list[Frame], list[_Node]]] = []
    queue = list(root.below.values())
    while queue:
        node = queue.pop()
        calls, chain_end = _chain(node)
        children = list(chain_end.below.values())
        visited.append((node, calls, children))
        queue += children
    made_branches: dict[int, Branch] = {}
    for node, calls, children in reversed(visited):
        ranks = array("I")
        for group in node.places:
            ranks.extend(group.ranks)
        below = tuple(sorted((made_branches.pop(id(p)) for p in children), key=_size))
        named = tuple(rank_ranges(ranks_of(ranks)))
        made_branches[id(node)] = Branch(named, tuple(calls), below, others(ranks, unnamed))
    return tuple(sorted((made_branches[id(n)] for n in root.below.values()), key=_size))


def _chain(node: _Node) -> tuple[list[Frame], _Node]:
    """The calls down to where ranks part or end."""
    calls: list[Frame] = []
    while True:
        assert node.frame is not None
        calls.append(node.frame)
        if len(node.below) != 1 or node.ends:
            return calls, node
        (node,) = node.below.values()


def _size(branch: Branch) -> tuple[int, int]:
    return -branch.count, branch.ranks[0][0] if branch.ranks else 0
