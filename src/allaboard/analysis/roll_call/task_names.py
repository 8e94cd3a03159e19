"""Names of ranks as their users know them: in a cluster of tasks (TensorFlow's) the task."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Declared, Who
from allaboard.facts.configuration.cluster import TASK_ORDER
from allaboard.facts.rank_sets import name_ranks

MAX_NAMED_TASKS = 8
"""Ranks or tasks that a sentence names before it counts the rest."""


def who_has_rank(declared: Declared | None, rank: int) -> Who:
    """Return who has this rank, even if no process of it was ever seen."""
    task = _tasks_by_rank(declared)[rank : rank + 1]
    if not task:
        return Who(index=rank, rank=rank)
    job, _, index = task[0][0].partition(":")
    return Who(job=job, index=int(index), rank=rank)


def describe_tasks(
    declared: Declared | None, ranks: Iterable[int], max_named: int = MAX_NAMED_TASKS
) -> str:
    """Return "ranks 2 and 3", or "ps 0 (h3:29500), ps 1 (h4:29500)" if the cluster lists tasks."""
    rank_list = tuple(ranks)
    tasks = _tasks_by_rank(declared)
    more = f" and {len(rank_list) - max_named} more" if len(rank_list) > max_named else ""
    if not tasks or max(rank_list, default=0) >= len(tasks):
        return name_ranks(rank_list)
    listed = (tasks[r] for r in rank_list[:max_named])
    return ", ".join(f"{task.replace(':', ' ')} ({address})" for task, address in listed) + more


def task_addresses(declared: Declared) -> tuple[str, ...]:
    """Return the address of each rank's task; () if the framework's ranks are not tasks."""
    return tuple(address for _, address in _tasks_by_rank(declared))


def _tasks_by_rank(declared: Declared | None) -> tuple[tuple[str, str], ...]:
    """Return task and address of each rank; () if the framework's ranks are not tasks."""
    if declared is None or not declared.cluster:
        return ()
    placed = []
    for task, address in declared.cluster.items():
        job, _, index = task.partition(":")
        if not index.isdecimal():
            return ()
        placed.append(
            (
                TASK_ORDER.index(job) if job in TASK_ORDER else len(TASK_ORDER),
                job,
                int(index),
                task,
                address,
            )
        )
    return tuple((task, address) for *_, task, address in sorted(placed)[: declared.world_size])
