"""The threads of one process as the kernel counts them: /proc/PID/task, proc(5)."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.facts import QueueTime, Task
from allaboard.hosts.proc import TICKS_PER_SECOND

MAX_THREADS = 256
"""Threads of one process that are looked at; the oldest come first."""


def thread_stats(pid: int) -> dict[int, Task]:
    """Return the threads of a process by kernel thread id; empty if it has gone."""
    stats = {}
    try:
        names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are enough
    except OSError:
        return {}
    for name in sorted(names, key=int)[:MAX_THREADS]:
        task = _task(Path(f"/proc/{pid}/task/{name}"))
        if task is not None:
            stats[int(name)] = task
    return stats


def queue_times(pid: int) -> dict[int, QueueTime]:
    """Return how long each thread has run and has waited for a core; empty if it cannot be read.

    Format: /proc/PID/task/TID/schedstat of the kernel's scheduler/sched-stats, in nanoseconds.
    """
    times = {}
    try:
        names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are enough
    except OSError:
        return {}
    for name in sorted(names, key=int)[:MAX_THREADS]:
        try:
            fields = Path(f"/proc/{pid}/task/{name}/schedstat").read_text().split()
            times[int(name)] = QueueTime(int(fields[0]) / 1e9, int(fields[1]) / 1e9, int(fields[2]))
        except (OSError, ValueError, IndexError):
            continue  # it has ended, or the kernel does not count
    return times


def system_call(pid: int, tid: int) -> str:
    """Return the system call that the thread is in: its number and arguments; "running" outside of
    one; "" if it may not be seen."""
    try:
        return Path(f"/proc/{pid}/task/{tid}/syscall").read_text().strip()
    except OSError:
        return ""


def _task(folder: Path) -> Task | None:
    try:
        head, _, tail = (folder / "stat").read_bytes().rpartition(b")")
        lines = (folder / "status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    fields = tail.split()
    sleeps = next((x.split()[1] for x in lines if x.startswith("voluntary_ctxt_switches:")), "0")
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    cpu = (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
    return Task(name, cpu, int(sleeps), fields[0].decode())
