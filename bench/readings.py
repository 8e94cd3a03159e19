"""What the agent's readings of ranks and host cost, in CPU time of the agent.

Alternating within one process: all readings of five seconds as the agent takes them, with their trends, and
those alone that it takes every five seconds (threads, stalls, disks, network files, network). The ranks are
two processes that sleep: what is read of them is the same.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

import sheet

from allaboard.coordinator.trackers.resource_trends import ResourceTrends
from allaboard.facts import Reading
from allaboard.hosts import proc
from allaboard.hosts.host_counters import HostCounters
from allaboard.hosts.resource_usage import LOOKS_PER_COUNTERS_READ, THREADS, ResourceUsage

RANKS = 2
WARM = 20
"""Rounds until the trends have as many readings as they keep."""


def all_readings(pids: list[int]) -> Callable[[float], None]:
    usage, trends = ResourceUsage((Path.cwd(),)), ResourceTrends()

    def read(now: float) -> None:
        for look in range(LOOKS_PER_COUNTERS_READ):
            trends.add_readings(now + look, "a", usage.read_usage(pids))

    return read


def rare_readings(pids: list[int]) -> Callable[[float], None]:
    counters, trends = HostCounters(), ResourceTrends()

    def rare() -> Iterable[Reading]:
        yield from counters.read_counters()
        for pid in pids:
            yield Reading(THREADS, proc.count_threads(pid), 0, pid, f"/proc/{pid}/stat")

    def read(now: float) -> None:
        trends.add_readings(now, "a", rare())

    return read


def main() -> int:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=120)
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.rounds, "ranks": RANKS}
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)"]
    processes = [subprocess.Popen(sleeper) for _ in range(RANKS)]
    pids = [p.pid for p in processes]
    ways = {"all": all_readings(pids), "rare": rare_readings(pids)}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for number in range(options.rounds + WARM):
            for name in random.sample(list(ways), len(ways)):
                begin = time.process_time_ns()
                ways[name](5.0 * number)
                taken[name].append((time.process_time_ns() - begin) / 1e9)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    every, rare = (median(taken[name][WARM:]) for name in ("all", "rare"))
    each_rank = 100 / LOOKS_PER_COUNTERS_READ / RANKS
    rows = [
        ("all of five seconds", 1e6 * every, every * each_rank),
        ("of them those that are read once in five seconds", 1e6 * rare, rare * each_rank),
    ]
    head = ("readings", "CPU time in five seconds (µs)", "of each rank's time (%)")
    sheet.page("readings", __doc__, facts, sheet.table(head, rows), options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
