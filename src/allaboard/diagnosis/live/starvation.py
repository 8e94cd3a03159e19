"""Processes that want a core and do not get one: what they do cannot be told from a few samples. Pure.

On an overloaded host a healthy process can be at one line for seconds, because it does not run. The
kernel counts for each thread how long it ran and how long it stood in a run queue; a process whose
threads stood there, and ran for a moment only, has not had the chance to move.
"""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.facts import QueueTime

MIN_WAITING_SHARE = 0.2
"""Share of the time that a thread stands in a run queue, from which on it lacks a core."""
ENOUGH_CPU_S = 0.5
"""CPU seconds with which a thread would have left the place of one step, however little it gets."""


def is_starved(
    first: Mapping[int, QueueTime], last: Mapping[int, QueueTime], span_s: float
) -> bool:
    """Return True if a thread wanted a core for much of the time and has hardly run.

    Args:
        first: times of the process's threads at the first sample, by kernel thread id.
        last: the same at the last sample.
        span_s: seconds between the two.
    """
    return span_s > 0 and any(
        last[tid].waited_s - begin.waited_s >= MIN_WAITING_SHARE * span_s
        and last[tid].ran_s - begin.ran_s < ENOUGH_CPU_S
        for tid, begin in first.items()
        if tid in last
    )
