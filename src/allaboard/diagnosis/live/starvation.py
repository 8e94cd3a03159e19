"""Processes that want a core and do not get one: what they do cannot be told from a few samples. Pure.

On an overloaded host a healthy process can be at one line for seconds, because it does not run. The
kernel counts for each thread how long it ran and how long it stood in a run queue; a process whose
threads stood there, and ran for a moment only, has not had the chance to move. A thread that polls and yields
(``sched_yield``, as a reactor of PyTorch's RPC does) stands in a run queue all the time, too, but gets a core
again and again and gives it back at once: it says nothing of the process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stall import IDLE_CORES, is_settled_stack
from allaboard.facts import Member, QueueTime, Stack

_STEPS = (Spot.STEP, Spot.COLLECTIVE, Spot.SCHEDULED)
_STEP_LIBRARY = re.compile(r"/(?:tensorflow/python|jax/_src)/")

MIN_WAITING_SHARE = 0.2
"""Share of the time that a thread stands in a run queue, from which on it lacks a core."""
ENOUGH_CPU_S = 0.5
"""CPU seconds with which a thread would have left the place of one step, however little it gets."""

MIN_POLLS, MAX_POLL_S = 50, 0.0002
"""How often a thread that polls gets a core at least while it is looked at, and the seconds that it uses each
time, on average. Measured on torch 2.13: 600 to 6,000 times in 4 s, for 5 to 17 microseconds; a thread that
computes keeps a core for a millisecond or more."""


def has_run_in_wait(stack: Stack | None, before: QueueTime | None, after: QueueTime | None) -> bool:
    """Return True if the main thread has run between two looks at it, at both of which it waited in a step of
    TensorFlow or JAX: it is another step by now. Some of these waits look every 0.2 s whether they are over
    (jax 0.10: for 0.06 ms), which is much less than a step takes of a thread."""
    if stack is None or classify_stack(stack) not in _STEPS or before is None or after is None:
        return False
    is_native_wait = any(_STEP_LIBRARY.search(f.file) for f in stack.frames)
    return is_native_wait and after.ran_s - before.ran_s > MAX_POLL_S * (after.runs - before.runs)


def is_busy_in_place(member: Member) -> bool:
    """Return True if the member computes, and was at one place at all samples so far."""
    return member.cpu >= IDLE_CORES and is_settled_stack(member.stack)


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
        and not _polls(begin, last[tid])
        for tid, begin in first.items()
        if tid in last
    )


def _polls(first: QueueTime, last: QueueTime) -> bool:
    runs = last.runs - first.runs
    return runs >= MIN_POLLS and last.ran_s - first.ran_s < runs * MAX_POLL_S
