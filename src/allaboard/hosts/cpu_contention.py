"""Who uses the cores that a process may run on: the process, its job, or others.

Formats: proc(5) for /proc/stat and /proc/PID/stat; /proc/PID/task/TID/schedstat is that of the
kernel's scheduler/sched-stats, whose second field is the time (ns) that a thread stood in a run
queue. What cannot be read is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from allaboard.facts import Reading
from allaboard.hosts.proc import TICKS_PER_SECOND, descendants_of

RUN_QUEUE, TAKEN, OURS = "run queue", "cores taken", "cores of the job"


class CoreContention:
    """Reads seconds that only rise, so that their rate is in cores (or in waiting threads)."""

    def __init__(self) -> None:
        self._last_cpu_s: dict[int, float] = {}
        self._job_cpu_s = 0.0

    def read_contention(self, pids: Iterable[int]) -> Iterator[Reading]:
        """Yield, for each process, the time that its threads stood in a run queue, and the busy
        time of the cores that it may use, with their number.

        Once per call: the CPU time of everything that runs below this agent.
        """
        watched_pids = list(pids)
        if not watched_pids:
            return
        busy = _busy_seconds_by_core()
        for pid in watched_pids:
            try:
                allowed = os.sched_getaffinity(pid)
                waited = sum(
                    int(file.read_text().split()[1])
                    for file in Path(f"/proc/{pid}/task").glob("*/schedstat")
                )
            except (OSError, ValueError, IndexError):
                continue
            yield Reading(RUN_QUEUE, waited / 1e9, 0, pid, f"/proc/{pid}/task/*/schedstat")
            taken = sum(busy.get(core, 0.0) for core in allowed)
            yield Reading(TAKEN, taken, len(allowed), pid, "/proc/stat")
        yield Reading(OURS, self._update_job_cpu(), 0, 0, "/proc/PID/stat")

    def _update_job_cpu(self) -> float:
        """Return the CPU seconds of all processes below this one so far. A process that has ended
        takes its time along, so differences are added up."""
        now = {pid: process_stat.cpu_s for pid, process_stat in descendants_of(os.getpid()).items()}
        self._job_cpu_s += sum(
            max(0.0, cpu - self._last_cpu_s.get(pid, 0.0)) for pid, cpu in now.items()
        )
        self._last_cpu_s = now
        return self._job_cpu_s


def _busy_seconds_by_core() -> dict[int, float]:
    """Return the seconds in which each core was not idle: all fields but idle and iowait, guests
    counted once."""
    busy_s = {}
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        name, *ticks = line.split()
        if name.startswith("cpu") and name[3:].isdecimal() and len(ticks) >= 8:
            spent = [int(t) for t in ticks[:8]]
            busy_s[int(name[3:])] = (sum(spent) - spent[3] - spent[4]) / TICKS_PER_SECOND
    return busy_s
