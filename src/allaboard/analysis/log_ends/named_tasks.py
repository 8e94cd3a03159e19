"""The member that a message of TensorFlow or JAX names by its task, whatever else the message says."""

from __future__ import annotations

import re

from allaboard.facts import Who

_TASK = re.compile(r"/job:(?P<job>(?!localhost)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)(?![/\d])")
"""A task, as TensorFlow's coordination service and sessions write it; with ``/device`` it is where an
operation was placed, and nobody's failure."""
_MISSING_RANKS = re.compile(
    r"\b(?:[Mm]issing|[Aa]bsent|[Ss]ilent"
    r"|[Uu]nresponsive) ranks?[: ]{1,3}\[?(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,63})\b"
)
JAX_JOB = "jax_worker"
"""Job of all processes of JAX: the task is the process."""


def find_tasks(message: str) -> tuple[tuple[str, int], ...]:
    """Return the job and the index of each task that the message names, in its order."""
    return tuple(dict.fromkeys((m["job"], int(m["task"])) for m in _TASK.finditer(message)))


def named_members(message: str) -> tuple[Who, ...]:
    """Return the members that the message says are missing, by their ranks, or the one task that it names."""
    missing = _MISSING_RANKS.search(message)
    ranks = [int(n) for n in re.findall(r"\d+", missing["ranks"])] if missing is not None else []
    return tuple(Who(index=r, rank=r) for r in ranks) or named_task(message)


def named_task(message: str) -> tuple[Who, ...]:
    """Return the one member that the message names, as a tuple; empty if it names none, or several: who of
    these is at fault, its words would have to say."""
    tasks = find_tasks(message)
    if len(tasks) != 1:
        return ()
    ((job, index),) = tasks
    return (Who(index=index, rank=index) if job == JAX_JOB else Who(job=job, index=index),)
