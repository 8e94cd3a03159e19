"""Configurations given together: what most of them say, and examples of such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from allaboard.facts import ClusterSpec, Pasted, facts_of

T = TypeVar("T", bound=Hashable)


def usual(facts: Pasted, read: Callable[[ClusterSpec], T]) -> tuple[dict[str, T], str, T] | None:
    """What ``read`` makes of each configuration with a cluster, by its name; the first name of those
    that say what most say; and that. None for fewer than two."""
    said = {name: read(spec) for name, spec in facts.specs if spec.cluster}
    if len(said) < 2:
        return None
    most = Counter(said.values()).most_common(1)[0][0]
    return said, next(name for name, value in said.items() if value == most), most


def pasted(clusters: Sequence[list[str]], indices: Sequence[int] = ()) -> Pasted:
    """For rules' examples: node0.json, node1.json, ... with these workers, each of them the worker
    of its own place, or of ``indices``."""
    of = indices or range(len(clusters))
    return Pasted(
        specs=tuple(
            (f"node{i}.json", facts_of(cluster={"worker": tasks}, task=("worker", index)).spec)
            for i, (tasks, index) in enumerate(zip(clusters, of, strict=True))
        )
    )
