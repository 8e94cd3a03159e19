"""Kills by the kernel's out-of-memory killer in a process's control group.

cgroup v2 counts them in memory.events (``oom_kill``), v1 in memory.oom_control; both documented
with the kernel (admin-guide/cgroup-v2, cgroup-v1/memory).
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from allaboard.hosts.proc import read_small_file

_ROOT = Path("/sys/fs/cgroup")


def oom_counter_file(pid: int, root: Path = _ROOT, proc: Path = Path("/proc")) -> Path | None:
    """The file that holds the count for the group of ``pid``; None where there is none."""
    try:
        groups = read_small_file(f"{proc}/{pid}/cgroup").decode(errors="surrogateescape")
    except OSError:
        return None
    return _counter_of(groups, root)


@lru_cache(maxsize=64)
def _counter_of(groups: str, root: Path) -> Path | None:
    """Return the counter file for these groups. Cached: the same groups have the same file, and
    finding it costs more than reading their names."""
    for line in groups.splitlines():
        # hierarchy-ID:controllers:path; v2 has one line, with no controllers (cgroups(7)).
        _, controllers, path = line.split(":", 2)
        group = path.lstrip("/")
        if controllers == "":
            # The local file first: the other one counts the groups below, too, where other jobs may run.
            candidates = [root / group / "memory.events.local", root / group / "memory.events"]
        elif "memory" in controllers.split(","):
            candidates = [root / "memory" / group / "memory.oom_control"]
        else:
            continue
        for file in candidates:
            if os.access(file, os.R_OK):
                return file
    return None


def count_oom_kills(file: Path | None) -> int:
    """Return the kills counted so far; 0 if the file cannot be read."""
    try:
        lines = file.read_text().splitlines() if file else []
    except OSError:
        return 0
    return next(
        (
            int(v)
            for k, _, v in (x.partition(" ") for x in lines)
            if k == "oom_kill" and v.isdecimal()
        ),
        0,
    )


class OomKills:
    """Out-of-memory kills that each worker's control groups had counted when the worker came there.

    A process may be moved to another group. The groups before stay: while the kernel takes a
    process down, cgroup v1 shows it in the root group. The kernel counts every process that it
    kills (mm/oom_kill.c), so each kill explains one end: several workers may share a group.
    """

    def __init__(self) -> None:
        self._count_by_file: dict[int, dict[Path, int]] = {}

    def watch_group(self, worker: int, file: Path | None) -> None:
        """Count kills in ``file`` for this worker from now on; None if there is no such file."""
        counts = self._count_by_file.setdefault(worker, {})
        if file is not None and file not in counts:
            counts[file] = count_oom_kills(file)

    def claim_kill(self, worker: int) -> bool:
        """Return True if the kernel has killed in a group of this worker and no other end was
        explained by that kill. Ask once for each process that SIGKILL has ended."""
        risen = [
            f
            for f, before in self._count_by_file.get(worker, {}).items()
            if count_oom_kills(f) > before
        ]
        for file in risen:
            for known in self._count_by_file.values():
                if file in known:
                    known[file] += 1
        return bool(risen)
