"""Since when the main thread of a process has not run: for how long it has been in one wait.

The kernel notes when a thread last ran, in the clock of the CPU on which it did: ``se.exec_start`` in
/proc/PID/task/TID/sched (kernel/sched/debug.c, with CONFIG_SCHED_DEBUG, as distributions build it). These
clocks leave out the time that interrupts and other guests took, so that each CPU has its own: it is read by a
thread that runs there for a moment.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

_EXEC_START = re.compile(r"^se\.exec_start\s*:\s*(\d+\.\d+)", re.MULTILINE)
_LAST_CPU_FIELD = 36
"""Position of ``processor`` in /proc/PID/stat behind the name of the program, proc(5)."""


def blocked_time(pid: int) -> float:
    """Return for how many seconds the main thread of the process has slept without a break; 0 if it runs, or
    if that cannot be known."""
    stat_text = _read(f"/proc/{pid}/task/{pid}/stat")
    fields = stat_text.rpartition(")")[2].split()
    if len(fields) <= _LAST_CPU_FIELD or fields[0] != "S":
        return 0.0
    slept_at = _exec_start(f"/proc/{pid}/task/{pid}/sched")
    now = _clock_of_cpu(int(fields[_LAST_CPU_FIELD])) if slept_at > 0.0 else 0.0
    # Whoever ran meanwhile may have changed the CPU.
    if slept_at != _exec_start(f"/proc/{pid}/task/{pid}/sched"):
        return 0.0
    return max(0.0, (now - slept_at) / 1000.0)


def _clock_of_cpu(cpu: int) -> float:
    """Return the scheduler's clock of this CPU (ms); 0 if no thread of ours may run there."""
    clock: list[float] = []

    def read_there() -> None:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError:
            return
        clock.append(_exec_start("/proc/thread-self/sched"))

    thread = threading.Thread(target=read_there)
    thread.start()
    thread.join()
    return clock[0] if clock else 0.0


def _exec_start(path: str) -> float:
    match = _EXEC_START.search(_read(path))
    return float(match[1]) if match is not None else 0.0


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
