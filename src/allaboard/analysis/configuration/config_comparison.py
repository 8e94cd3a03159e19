"""Configurations that are given together: the value that most of them have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from allaboard.facts import ClusterSpec, Pasted, sample_config_facts

T = TypeVar("T", bound=Hashable)


def find_majority_value(
    facts: Pasted, read: Callable[[ClusterSpec], T]
) -> tuple[dict[str, T], str, T] | None:
    """Return the value of ``read`` for each configuration with a cluster, by name, and the most frequent one.

    Between the two is the first name that has this value. Return None if fewer than two have a cluster.
    """
    values = {name: read(spec) for name, spec in facts.specs if spec.cluster}
    if len(values) < 2:
        return None
    majority = Counter(values.values()).most_common(1)[0][0]
    return values, next(name for name, value in values.items() if value == majority), majority


def example_pasted_configs(clusters: Sequence[list[str]], indices: Sequence[int] = ()) -> Pasted:
    """Return node0.json, node1.json, ... for rules' examples, each with these workers.

    Each configuration is for the worker with its own number, or with that of ``indices``.
    """
    task_indices = indices or range(len(clusters))
    return Pasted(
        specs=tuple(
            (
                f"node{i}.json",
                sample_config_facts(cluster={"worker": tasks}, task=("worker", index)).spec,
            )
            for i, (tasks, index) in enumerate(zip(clusters, task_indices, strict=True))
        )
    )
