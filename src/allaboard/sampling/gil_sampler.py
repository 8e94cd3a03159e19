"""Finds the thread of a process that keeps the interpreter to itself.

/proc alone shows whether any thread wakes as often as one that waits for the GIL. Only then are the
system calls of those threads sampled for a moment; if one stands at a futex, py-spy is started,
which reads the process's memory without pausing it; and the same a second time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from time import monotonic

import msgspec

from allaboard.analysis.stalls.gil_contention import (
    MIN_LOOK_SPAN_S,
    SYSCALL_SAMPLES,
    ThreadsSnapshot,
    find_gil_grip,
    may_be_at_futex,
    possible_gil_waiters,
    stays_at_futex,
)
from allaboard.facts import Grip
from allaboard.formats.dumps.thread_dumps.stack_frames import SpiedThread
from allaboard.hosts.thread_stats import system_call, thread_stats

MAX_CANDIDATES = 8
"""Threads that are looked at more closely."""
SYSCALL_SAMPLE_INTERVAL_S = 0.007
"""Seconds between two looks at a system call: no multiple of the 5 ms in which such a thread wakes."""
Spy = Callable[[int], Awaitable[tuple[SpiedThread, ...]]]


class GilSampler:
    """Remembers the last snapshot of each process. ``spy`` returns its Python threads, () if it
    cannot."""

    def __init__(self, spy: Spy) -> None:
        self._spy = spy
        self._last_snapshots: dict[int, ThreadsSnapshot] = {}

    async def sample_gil(self, pid: int) -> Grip | None:
        """Compare the process with its last snapshot. Costs next to nothing unless a thread looks
        as if it waited for the GIL."""
        previous, sampled_at = self._last_snapshots.get(pid), monotonic()
        if previous is not None and sampled_at - previous.taken_at < MIN_LOOK_SPAN_S:
            return None  # too soon to tell; it stays what the next look is compared with
        now = self._last_snapshots[pid] = ThreadsSnapshot(sampled_at, thread_stats(pid))
        if previous is None or not possible_gil_waiters(previous, now):
            return None
        first_sample = await self._closely(pid, previous, now)
        if not first_sample.at_futex:
            return None
        await asyncio.sleep(max(0.0, now.taken_at + MIN_LOOK_SPAN_S - monotonic()))
        second_snapshot = ThreadsSnapshot(monotonic(), thread_stats(pid))
        second_sample = self._last_snapshots[pid] = await self._closely(
            pid, first_sample, second_snapshot
        )
        return find_gil_grip(first_sample, second_sample, pid)

    async def _closely(
        self, pid: int, previous: ThreadsSnapshot, now: ThreadsSnapshot
    ) -> ThreadsSnapshot:
        # /proc first: py-spy is a process to start, and only where a thread is at a futex.
        tids_at_futex = await _threads_at_futex(
            pid, sorted(possible_gil_waiters(previous, now))[:MAX_CANDIDATES]
        )
        spied = await self._spy(pid) if tids_at_futex else ()
        return msgspec.structs.replace(now, at_futex=tids_at_futex, python_threads=spied)


async def _threads_at_futex(pid: int, tids: list[int]) -> frozenset[int]:
    """Return the threads that stand at one futex in all samples. Sampling stops early for the
    others: gloo's own threads wake as often in epoll_wait(2)."""
    samples: dict[int, list[str]] = {tid: [] for tid in tids}
    machine = os.uname().machine
    for _ in range(SYSCALL_SAMPLES):
        for tid in list(samples):
            samples[tid].append(call := system_call(pid, tid))
            if not may_be_at_futex(call, machine):
                del samples[tid]
        if not samples:
            break
        await asyncio.sleep(SYSCALL_SAMPLE_INTERVAL_S)
    return frozenset(tid for tid, texts in samples.items() if stays_at_futex(texts, machine))
