"""What the processes of a job use of what is limited, and what this host and its cgroup take from them.

Formats: proc(5), cgroups(7), the kernel's admin-guide for cgroup-v1 (memory, cpu) and cgroup-v2. What
cannot be read is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from allaboard.facts import Reading
from allaboard.hosts.cores import Cores
from allaboard.hosts.proc import TICK

PAGE = os.sysconf("SC_PAGE_SIZE")
FILES, SPACE, CGROUP, HOST = "open files", "address space", "memory of the cgroup", "host memory"
SHM, DISK = "/dev/shm", "disk"
THROTTLED, STEAL, SWAPPED, QUEUED = "throttled", "steal", "swapped", "queued"
_UNLIMITED = 1 << 60
"""A memory limit of cgroup v1 that is none is a number of this size."""


class Usage:
    """Reads what processes use, and their host; ``folders`` are written to."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._folders = tuple(folders)
        self._cores = Cores()

    def read(self, pids: Iterable[int], serving: Iterable[int] = ()) -> list[Reading]:
        """Of these processes and of their host; of those that are ``serving`` also who has their cores."""
        found: list[Reading] = list(self._cores.read(serving))
        alive = list(pids)
        for pid in alive:
            found += self._process(pid)
        if alive:
            found += self._host()
            found += self._cgroups(alive)
        return found

    def _process(self, pid: int) -> Iterator[Reading]:
        limits = self._limits_of(pid)
        try:
            files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names are enough
            yield Reading(FILES, files, limits.get("files", 0), pid, f"/proc/{pid}/fd")
            if limits.get("space"):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
                yield Reading(SPACE, pages * PAGE, limits["space"], pid, f"/proc/{pid}/statm")
            waited = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
            yield Reading(QUEUED, waited / 1e9, 0, pid, f"/proc/{pid}/schedstat")
        except (OSError, ValueError, IndexError):
            return

    def _limits_of(self, pid: int) -> dict[str, int]:
        """Its soft limits. They may be changed while it runs, so they are read again."""
        known: dict[str, int] = {}
        names = {"Max open files": "files", "Max address space": "space"}
        try:
            lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        except OSError:
            return known
        for line in lines:
            for label, name in names.items():
                if line.startswith(label):
                    word = line[len(label) :].split()[0]
                    known[name] = int(word) if word.isdigit() else 0
        return known

    def _host(self) -> Iterator[Reading]:
        memory = _numbers(Path("/proc/meminfo"), ":")
        total = memory.get("MemTotal", 0) * 1024
        if total:
            used = total - memory.get("MemAvailable", 0) * 1024
            yield Reading(HOST, used, total, 0, "/proc/meminfo")
        pages = _numbers(Path("/proc/vmstat"), " ")
        if "pswpin" in pages:
            swapped = (pages["pswpin"] + pages.get("pswpout", 0)) * PAGE
            yield Reading(SWAPPED, swapped, 0, 0, "/proc/vmstat")
        try:
            cores = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
            steal = int(cores[7]) / TICK / (os.cpu_count() or 1)
            yield Reading(STEAL, steal, 0, 0, "/proc/stat")
        except (OSError, ValueError, IndexError):
            pass
        for name, path in [(SHM, Path(SHM)), *((f"{DISK} {p}", p) for p in self._folders)]:
            try:
                room = os.statvfs(path)
            except OSError:
                continue
            size = room.f_blocks * room.f_frsize
            if size:
                used = size - room.f_bavail * room.f_frsize
                yield Reading(name, used, size, 0, f"df {path}")

    def _cgroups(self, pids: list[int]) -> Iterator[Reading]:
        """Each group once: under pid 0 where all are in it, else under that of its first process."""
        for controller, read in (("memory", _memory), ("cpu", _cpu)):
            groups: dict[Path, list[int]] = {}
            for pid in pids:
                group = self._group(pid, controller)
                if group is not None:
                    groups.setdefault(group, []).append(pid)
            for group, members in groups.items():
                yield from read(group, 0 if len(members) == len(pids) else members[0])

    def _group(self, pid: int, controller: str) -> Path | None:
        """The folder of the process's cgroup for this controller, in version 1 or 2."""
        try:
            lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        except OSError:
            return None
        for line in lines:
            number, _, rest = line.partition(":")
            names, _, path = rest.partition(":")
            base = Path("/sys/fs/cgroup")
            if controller in names.split(","):
                folder = base / controller / path.lstrip("/")
            elif number == "0" and not names and not (base / controller).exists():
                folder = base / path.lstrip("/")
            else:
                continue
            # Within a container the path may be the host's, and the group our root.
            return folder if folder.exists() else (base / controller)
        return None


def _cpu(group: Path, pid: int) -> Iterator[Reading]:
    """Seconds in which the group's processes wanted to run and were not let."""
    numbers = _numbers(group / "cpu.stat", " ")
    if "throttled_usec" in numbers or "throttled_time" in numbers:
        taken = numbers.get("throttled_usec", 0) / 1e6 or numbers.get("throttled_time", 0) / 1e9
        yield Reading(THROTTLED, taken, _quota(group), pid, str(group / "cpu.stat"))


def _memory(group: Path, pid: int) -> Iterator[Reading]:
    """What cannot be reclaimed at once counts: file pages that were not used lately do not."""
    stat = _numbers(group / "memory.stat", " ")
    for used_file, limit_file in (
        ("memory.current", "memory.max"),
        ("memory.usage_in_bytes", "memory.limit_in_bytes"),
    ):
        used, limit = _number(group / used_file), _number(group / limit_file)
        if used and limit and limit < _UNLIMITED:
            idle = stat.get("total_inactive_file", stat.get("inactive_file", 0))
            yield Reading(CGROUP, max(0, used - idle), limit, pid, str(group / used_file))


def _quota(group: Path) -> float:
    """Cores that the cgroup may use, 0 where it is not limited."""
    try:
        words = (group / "cpu.max").read_text().split()
        return int(words[0]) / int(words[1]) if words[0] != "max" else 0.0
    except (OSError, ValueError, IndexError):
        pass
    quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
    return quota / period if quota > 0 and period > 0 else 0.0


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # "max"
        return 0


def _numbers(file: Path, after: str) -> dict[str, int]:
    """Lines of a name, this separator and a number."""
    found = {}
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        name, _, rest = line.partition(after)
        word = rest.split()[0] if rest.split() else ""
        if word.isdigit():
            found[name] = int(word)
    return found
