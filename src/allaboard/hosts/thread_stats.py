"""The threads of one process as the kernel counts them: /proc/PID/task, proc(5)."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.facts import Task
from allaboard.hosts.proc import TICK

MOST = 256
"""Threads of one process that are looked at; the oldest come first."""


def tasks(pid: int) -> dict[int, Task]:
    """By kernel thread id; empty where the process is gone."""
    found = {}
    try:
        names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are enough
    except OSError:
        return {}
    for name in sorted(names, key=int)[:MOST]:
        seen = _task(Path(f"/proc/{pid}/task/{name}"))
        if seen is not None:
            found[int(name)] = seen
    return found


def system_call(pid: int, tid: int) -> str:
    """The system call that the thread is in: its number and arguments, "running" outside of one; "" where
    it may not be seen."""
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
    called = head.partition(b"(")[2].decode("utf-8", "replace")
    cpu = (int(fields[11]) + int(fields[12])) / TICK
    return Task(called, cpu, int(sleeps), fields[0].decode())
