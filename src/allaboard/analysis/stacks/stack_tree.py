"""The stacks of all ranks as one prefix tree, outermost call first, each branch with its ranks.

The form is that of LLNL's Stack Trace Analysis Tool (Arnold et al., "Stack Trace Analysis for
Large Scale Debugging", IPDPS 2007): what thousands do alike is one line.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from allaboard.analysis.stacks.stack_groups import StackGroup
from allaboard.analysis.stacks.unranked_processes import names_of_unranked, only_ranks
from allaboard.facts import Branch, Frame, Who
from allaboard.facts.rank_sets import rank_ranges


class _Node:
    """One call of the tree and the groups that pass through it; ranks are joined only for the result."""

    __slots__ = ("children", "frame", "groups", "is_end")

    def __init__(self, frame: Frame | None) -> None:
        self.frame = frame
        self.groups: list[StackGroup] = []
        self.children: dict[Frame, _Node] = {}
        self.is_end = False


def merge_stacks(
    groups: Iterable[StackGroup], unnamed: Mapping[int, Who] | None = None
) -> tuple[Branch, ...]:
    """Return the outermost branches of the prefix tree, those with most ranks first.

    Groups without frames are left out; ``unnamed`` is as for `Dumps`.
    """
    root = _Node(None)
    for group in groups:
        node = root
        for frame in reversed(group.frames):
            if frame.is_probe:
                continue  # a hook between the caller and the framework tells nobody anything
            child = node.children.get(frame)
            if child is None:
                child = node.children[frame] = _Node(frame)
            child.groups.append(group)
            node = child
        node.is_end = True
    return _make_branches(root, unnamed or {})


def _make_branches(root: _Node, unnamed: Mapping[int, Who]) -> tuple[Branch, ...]:
    """Return the branches below ``root``, without recursion, which a deep stack would exceed."""
    # Depth first, remembering the order; then from the leaves back, so that children exist before their
    # parents.
    visited: list[tuple[_Node, list[Frame], list[_Node]]] = []
    queue = list(root.children.values())
    while queue:
        node = queue.pop()
        calls, chain_end = _follow_chain(node)
        children = list(chain_end.children.values())
        visited.append((node, calls, children))
        queue += children
    made_branches: dict[int, Branch] = {}
    for node, calls, children in reversed(visited):
        ranks = array("I")
        for group in node.groups:
            ranks.extend(group.ranks)
        below = tuple(sorted((made_branches.pop(id(p)) for p in children), key=_sort_key))
        named = tuple(rank_ranges(only_ranks(ranks)))
        made_branches[id(node)] = Branch(
            named, tuple(calls), below, names_of_unranked(ranks, unnamed)
        )
    return tuple(sorted((made_branches[id(n)] for n in root.children.values()), key=_sort_key))


def _follow_chain(node: _Node) -> tuple[list[Frame], _Node]:
    """Return the calls from this node down to where ranks part or end, and the last node of them."""
    calls: list[Frame] = []
    while True:
        assert node.frame is not None
        calls.append(node.frame)
        if len(node.children) != 1 or node.is_end:
            return calls, node
        (node,) = node.children.values()


def _sort_key(branch: Branch) -> tuple[int, int]:
    return -branch.count, branch.ranks[0][0] if branch.ranks else 0
