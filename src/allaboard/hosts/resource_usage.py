"""Use of limited resources by the processes of a job, and what this host and its cgroup take from
them.

Formats: proc(5), cgroups(7), the kernel's admin-guide for cgroup-v1 (memory, cpu) and cgroup-v2.
What cannot be read is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from allaboard.facts import Reading
from allaboard.hosts import proc, shared_cores
from allaboard.hosts.cpu_contention import CoreContention
from allaboard.hosts.host_counters import HostCounters
from allaboard.hosts.proc import PAGE_NBYTES, TICKS_PER_SECOND

FILES, SPACE, CGROUP, HOST = "open files", "address space", "memory of the cgroup", "host memory"
LOOKS_PER_SHARED_CORES_READ = 5
"""Of so many looks one reads anew who shares cores."""
LOOKS_PER_COUNTERS_READ = 5
"""Of so many looks one reads the counters of the host, and the number of threads."""
THREADS = "threads"
DEVICE_MEMORY, ALLOCATION_RETRIES = "device memory", "allocation retries"
"""Of a process, by its framework's count."""
SHM, DISK = "/dev/shm", "disk"
THROTTLED, STEAL, SWAPPED, QUEUED = "throttled", "steal", "swapped", "queued"
_UNLIMITED = 1 << 60
"""A memory limit of cgroup v1 that is none is a number of this size."""


class ResourceUsage:
    """Reads what processes and their host use. ``folders`` are those that the job writes to; the file systems
    on which they are count, by where these are mounted."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        mounts = dict.fromkeys(map(mount_point, folders))
        self._mounts = tuple(mount for mount in mounts if str(mount) != SHM)
        self._cores = CoreContention()
        self._group_folders: dict[tuple[str, str], Path] = {}
        self._host_counters = HostCounters()
        self._looks = 0
        self._shared: tuple[list[int], int, list[Reading]] = ([], 0, [])

    def read_usage(self, pids: Iterable[int], serving: Iterable[int] = ()) -> list[Reading]:
        """Return the readings of these processes and of their host; for those that are ``serving``
        also who uses their cores."""
        readings: list[Reading] = list(self._cores.read_contention(serving))
        alive = list(pids)
        for pid in alive:
            readings += self._process(pid)
        readings += self._shared_by(alive)
        if alive:
            readings += self._host()
            readings += self._cgroups(alive)
            if self._looks % LOOKS_PER_COUNTERS_READ == 0:
                readings += self._host_counters.read_counters()
                readings += (
                    Reading(THREADS, count, 0, pid, f"/proc/{pid}/stat")
                    for pid in alive
                    if (count := proc.count_threads(pid))
                )
            self._looks += 1
        return readings

    def _shared_by(self, pids: list[int]) -> list[Reading]:
        """Return the readings of shared cores, read anew only now and then: they hardly ever
        change, and cost as much to read as everything else of a process."""
        last_pids, looks, readings = self._shared
        if pids != last_pids or looks % LOOKS_PER_SHARED_CORES_READ == 0:
            looks, readings = 0, list(shared_cores.read_shared_cores(pids))
        self._shared = pids, looks + 1, readings
        return readings

    def _process(self, pid: int) -> Iterator[Reading]:
        limits = self._limits_of(pid)
        try:
            files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names are enough
            yield Reading(FILES, files, limits.get("files", 0), pid, f"/proc/{pid}/fd")
            if limits.get("space"):
                pages = int(proc.read_small_file(f"/proc/{pid}/statm").split()[0])
                yield Reading(
                    SPACE, pages * PAGE_NBYTES, limits["space"], pid, f"/proc/{pid}/statm"
                )
            waited = int(proc.read_small_file(f"/proc/{pid}/schedstat").split()[1])
            yield Reading(QUEUED, waited / 1e9, 0, pid, f"/proc/{pid}/schedstat")
        except (OSError, ValueError, IndexError):
            return

    def _limits_of(self, pid: int) -> dict[str, int]:
        """Return the soft limits of a process. They may change while it runs, so they are read each
        time."""
        try:
            text = proc.read_small_file(f"/proc/{pid}/limits")
        except OSError:
            return {}
        limits = {}
        for label, name in ((b"\nMax open files", "files"), (b"\nMax address space", "space")):
            value = text.partition(label)[2].split(None, 1)[:1]
            if value:
                limits[name] = int(value[0]) if value[0].isdigit() else 0
        return limits

    def _host(self) -> Iterator[Reading]:
        memory = _numbers("/proc/meminfo", ("MemTotal:", "MemAvailable:"))
        total = memory.get("MemTotal:", 0) * 1024
        if total:
            used = total - memory.get("MemAvailable:", 0) * 1024
            yield Reading(HOST, used, total, 0, "/proc/meminfo")
        pages = _numbers("/proc/vmstat", ("pswpin", "pswpout"))
        if "pswpin" in pages:
            swapped = (pages["pswpin"] + pages.get("pswpout", 0)) * PAGE_NBYTES
            yield Reading(SWAPPED, swapped, 0, 0, "/proc/vmstat")
        try:
            cores = _text("/proc/stat").split("\n", 1)[0].split()[1:]
            steal = int(cores[7]) / TICKS_PER_SECOND / (os.cpu_count() or 1)
            yield Reading(STEAL, steal, 0, 0, "/proc/stat")
        except (OSError, ValueError, IndexError):
            pass
        for name, path in [(SHM, Path(SHM)), *((f"{DISK} {p}", p) for p in self._mounts)]:
            try:
                room = os.statvfs(path)
            except OSError:
                continue
            size = room.f_blocks * room.f_frsize
            if size and not room.f_flag & os.ST_RDONLY:  # an image is full by nature
                # Of what is kept for the superuser, the others get none.
                free = room.f_bfree if os.geteuid() == 0 else room.f_bavail
                used = size - free * room.f_frsize
                yield Reading(name, used, size, 0, f"df {path}")

    def _cgroups(self, pids: list[int]) -> Iterator[Reading]:
        """Yield each group once: under pid 0 if all processes are in it, else under the pid of its
        first process."""
        placed = {pid: _placed(pid) for pid in pids}
        for controller, read in (("memory", _memory), ("cpu", _cpu)):
            groups: dict[Path, list[int]] = {}
            for pid, lines in placed.items():
                group = self._group(lines, controller)
                if group is not None:
                    groups.setdefault(group, []).append(pid)
            for group, members in groups.items():
                yield from read(group, 0 if len(members) == len(pids) else members[0])

    def _group(self, lines: str, controller: str) -> Path | None:
        """Return the folder of the cgroup for this controller, version 1 or 2, for processes whose
        /proc/PID/cgroup has these lines."""
        cached = self._group_folders.get((lines, controller))
        if cached is not None and os.access(cached, os.F_OK):
            return cached
        for line in lines.splitlines():
            number, _, controllers_and_path = line.partition(":")
            names, _, path = controllers_and_path.partition(":")
            base = Path("/sys/fs/cgroup")
            if controller in names.split(","):
                folder = base / controller / path.lstrip("/")
            elif number == "0" and not names and not os.access(base / controller, os.F_OK):
                folder = base / path.lstrip("/")
            else:
                continue
            # Within a container the path may be the host's, and the group our root.
            group = folder if os.access(folder, os.F_OK) else (base / controller)
            self._group_folders[lines, controller] = group
            return group
        return None


def mount_point(folder: Path) -> Path:
    """Return the folder at which the file system that this one is on is mounted."""
    path = Path(os.path.realpath(folder))
    while not path.is_mount() and path != path.parent:
        path = path.parent
    return path


def _placed(pid: int) -> str:
    try:
        return proc.read_small_file(f"/proc/{pid}/cgroup").decode(errors="surrogateescape")
    except OSError:
        return ""


def _cpu(group: Path, pid: int) -> Iterator[Reading]:
    """Yield the seconds in which the group's processes wanted to run and were throttled."""
    numbers = _numbers(f"{group}/cpu.stat", ("throttled_usec", "throttled_time"))
    if numbers:
        taken = numbers.get("throttled_usec", 0) / 1e6 or numbers.get("throttled_time", 0) / 1e9
        yield Reading(THROTTLED, taken, _quota(group), pid, f"{group}/cpu.stat")


def _memory(group: Path, pid: int) -> Iterator[Reading]:
    """Yield the group's memory that cannot be reclaimed at once: file pages that were not used
    lately do not count."""
    for used_file, limit_file in (
        ("memory.current", "memory.max"),
        ("memory.usage_in_bytes", "memory.limit_in_bytes"),
    ):
        limit = _number(f"{group}/{limit_file}")
        used = _number(f"{group}/{used_file}") if 0 < limit < _UNLIMITED else 0
        if used:
            idle_files = ("total_inactive_file", "inactive_file")
            stat = _numbers(f"{group}/memory.stat", idle_files)
            idle = stat.get(idle_files[0], stat.get(idle_files[1], 0))
            yield Reading(CGROUP, max(0, used - idle), limit, pid, f"{group}/{used_file}")


def _quota(group: Path) -> float:
    """Return the cores that the cgroup may use; 0 if it is not limited."""
    try:
        fields = _text(f"{group}/cpu.max").split()
        return int(fields[0]) / int(fields[1]) if fields[0] != "max" else 0.0
    except (OSError, ValueError, IndexError):
        pass
    quota, period = _number(f"{group}/cpu.cfs_quota_us"), _number(f"{group}/cpu.cfs_period_us")
    return quota / period if quota > 0 and period > 0 else 0.0


def _text(file: str) -> str:
    with open(file) as stream:  # noqa: PTH123 - a Path costs more than the file
        return stream.read()


def _number(file: str) -> int:
    try:
        return int(_text(file))
    except (OSError, ValueError):  # "max"
        return 0


def _numbers(file: str, names: tuple[str, ...]) -> dict[str, int]:
    """Return the numbers beside these names, each at the beginning of a line; names that are absent
    are left out."""
    try:
        text = "\n" + _text(file)
    except OSError:
        return {}
    values = {}
    for name in names:
        position = text.find(f"\n{name} ")
        fields = text[position + len(name) + 1 :].split(None, 1) if position >= 0 else []
        if fields and fields[0].isdecimal():
            values[name] = int(fields[0])
    return values
