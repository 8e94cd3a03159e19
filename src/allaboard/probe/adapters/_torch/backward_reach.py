"""Which DDP models a backward concerns: those of which it reaches a parameter.

A model that went forward is not due in the next backward for that alone: of a GAN's two, the other one may
come, and an output may be there to be logged only, or to train a small model of one rank on it. Of one model
the first parameter that is found is enough, and stands near the loss.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Any, Tuple

    Way = Tuple[int, ...]
    """The number of the edge to follow from each node, from where a backward begins to a parameter."""

MOST = 20_000
"""Nodes of autograd's graph that are looked at; each takes about a microsecond."""
HIDES = "CheckpointFunctionBackward"
"""The node of `torch.utils.checkpoint` (reentrant), which makes its part of the graph only when it runs."""


class UnknownGraphError(Exception):
    """The graph does not tell which models are due."""


def reaches(root: Any, way: Way, owners: dict[int, int], reducer: int) -> bool:
    """Return True if this way leads from ``root`` to a parameter of the reducer, as it did in a graph before.

    A step's graph is most often like that of the step before, and one way proves enough.
    """
    try:
        node = _node(root)
        for edge in way:
            node = node.next_functions[edge][0]
        return owners.get(id(node.variable)) == reducer
    except (AttributeError, IndexError):
        return False


def due(
    roots: Iterable[Any],
    owners: dict[int, int],
    pending: Container[int],
    count: int,
    ways: dict[int, Way],
) -> set[int]:
    """Return those of the ``count`` reducers in ``pending`` whose parameters a backward from these
    roots reaches; ``owners`` has the reducer of each parameter, both by id(). The way from the first root to
    each is left in ``ways``.

    Raises UnknownGraphError if the graph is too large, or a part of it is not there yet.
    """
    reached: set[int] = set()
    line = deque(n for n in map(_node, roots) if n is not None)
    first = line[0] if line else None
    visited: dict[Any, tuple[Any, int]] = dict.fromkeys(line, (None, 0))
    """The node from where each was found, and by which edge."""
    while line:
        node = line.popleft()
        onward = node.next_functions
        if not onward:
            owner = owners.get(id(getattr(node, "variable", None)))
            if owner is not None and owner in pending:
                reached.add(owner)
                edges = []
                while node is not first and node is not None:
                    node, edge = visited[node]
                    edges.append(edge)
                if node is not None:
                    ways[owner] = tuple(reversed(edges))
                if len(reached) == count:
                    return reached
        elif type(node).__name__ == HIDES:
            raise UnknownGraphError
        for edge, (function, _) in enumerate(onward):
            if function is not None and function not in visited:
                visited[function] = node, edge
                line.append(function)
        if len(visited) > MOST:
            raise UnknownGraphError
    return reached


def _node(root: Any) -> Any:
    """Return the node where backward begins: of a tensor, or of a
    `torch.autograd.graph.GradientEdge`."""
    return root.grad_fn if hasattr(root, "grad_fn") else root.node
