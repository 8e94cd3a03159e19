"""The number of cores that a process's control groups leave it.

cpu.max of cgroup v2, cpu.cfs_quota_us of v1; both documented with the kernel
(admin-guide/cgroup-v2, scheduler/sched-bwc).
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from allaboard.hosts.proc import read_small_file

_ROOT = Path("/sys/fs/cgroup")


def tightest_cpu_group(
    pid: int, root: Path = _ROOT, proc: Path = Path("/proc")
) -> tuple[Path, float] | None:
    """Return the folder of the group that leaves the process the least, and how many cores that is;
    None if none is limited."""
    try:
        groups = read_small_file(f"{proc}/{pid}/cgroup").decode(errors="surrogateescape")
    except OSError:
        return None
    return tightest_limit(groups, root)


def tightest_limit(groups: str, root: Path = _ROOT) -> tuple[Path, float] | None:
    """Return the same for processes whose /proc/PID/cgroup has these lines."""
    files = _files(groups, root)
    limits = [(file.parent, limit) for file in files if (limit := _limit(file)) is not None]
    return min(limits, key=lambda one: one[1], default=None)


@lru_cache(maxsize=64)
def _files(groups: str, root: Path) -> tuple[Path, ...]:
    """Return the files with the limits of these groups. Cached: the same names have the same files."""
    files: list[Path] = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        top, name = (root, "cpu.max") if not controllers else (root / "cpu", "cpu.cfs_quota_us")
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            if os.access(folder / name, os.F_OK):
                files.append(folder / name)
            if folder == top:
                break
    return tuple(files)


def _limit(file: Path) -> float | None:
    """Return the cores that a limit file allows: ``200000 100000`` or ``max 100000`` in v2; quota
    and period in two files in v1, -1 for none."""
    try:
        fields = read_small_file(str(file)).split()
        if file.name != "cpu.max":
            fields += read_small_file(str(file.with_name("cpu.cfs_period_us"))).split()
        allowed, period = int(fields[0]), int(fields[1])
    except (OSError, ValueError, IndexError):
        return None
    return allowed / period if allowed > 0 and period > 0 else None
