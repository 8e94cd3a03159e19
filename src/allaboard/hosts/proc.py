"""One process as the kernel shows it in /proc; formats are those of proc(5)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_NBYTES = os.sysconf("SC_PAGE_SIZE")
SMALL_FILE_NBYTES = 1 << 14


class ProcStat(msgspec.Struct, frozen=True):
    """One reading of /proc/PID/stat."""

    state: str
    """State letter, for example "S", "R", "D", "T", "Z"."""
    ppid: int
    """Pid of the parent."""
    start_ticks: int
    """Start of the process in clock ticks since boot."""
    cpu_s: float
    """CPU time so far, in seconds."""
    rss_nbytes: int = 0
    """Resident memory."""


def read_stat(pid: int) -> ProcStat | None:
    """Return one reading of ``pid``; None if it has gone."""
    fields = _fields(pid)
    if not fields:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return ProcStat(
        fields[0].decode(),
        int(fields[1]),
        int(fields[19]),
        ticks / TICKS_PER_SECOND,
        int(fields[21]) * PAGE_NBYTES,
    )


def wait_status(pid: int) -> int | None:
    """Return how a process ended that its parent has not waited for yet, as waitpid(2) gives it;
    None for any other process.

    A process of another user reads as one that ended well.
    """
    fields = _fields(pid)
    is_unreaped = fields[:1] in ([b"Z"], [b"X"]) and len(fields) > 49
    return int(fields[49]) if is_unreaped else None


def count_threads(pid: int) -> int:
    """Return how many threads live or have not been waited for; 0 if the process has gone."""
    fields = _fields(pid)
    return int(fields[17]) if len(fields) > 17 else 0


def _fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third on, proc(5); empty if the process has
    gone. The second field, its name, may hold anything."""
    try:
        return read_small_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def read_small_file(path: str) -> bytes:
    """Return what a file of a few kilobytes in /proc or /sys holds. Raises OSError.

    A Path, or a file object, costs more than the reading.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, SMALL_FILE_NBYTES)
    finally:
        os.close(descriptor)


def is_on_cpu(pid: int) -> bool:
    """Return True if a thread of the process uses a core now, or waits for one."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are enough
        return any(_state(f"/proc/{pid}/task/{thread}/stat") == b"R" for thread in threads)
    except OSError:
        return False


def _state(file: str) -> bytes:
    with open(file, "rb") as stream:  # noqa: PTH123 - of each of hundreds of threads
        return stream.read().rpartition(b")")[2].split(None, 1)[0]


def count_voluntary_switches(pid: int) -> int:
    """Return how many times the main thread has gone to sleep by itself; 0 if it has gone.

    A thread that stays in state D while this number stands still is in one wait. The kernel itself
    looks for hung tasks this way (kernel/hung_task.c).
    """
    return int(_status(pid, b"voluntary_ctxt_switches:") or 0)


def allowed_cores(pid: int) -> int:
    """Return how many cores the main thread may run on, sched_getaffinity(2); 0 if it has gone."""
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return 0


def io_bytes(pid: int) -> int:
    """Return the bytes that went through read and write calls so far; 0 if they may not be read."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().split("\n", 2)
    except OSError:
        return 0
    numbers = (line.partition(":")[2].strip() for line in lines[:2])
    return sum(int(n) for n in numbers if n.isdecimal())


def has_handler(pid: int, signum: int) -> bool:
    """Return True if the process has a handler for this signal now (SigCgt)."""
    return bool(int(_status(pid, b"SigCgt:") or b"0", 16) >> (signum - 1) & 1)


def _status(pid: int, field: bytes) -> bytes:
    """Return this field of /proc/PID/status, up to the first blank; empty if the process has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return b""
    return next((line.split()[1] for line in lines if line.startswith(field)), b"")


def points_to(pid: int, fd: int, path: Path) -> bool:
    """Return True if this file descriptor of the process still is that file."""
    try:
        descriptor_stat = Path(f"/proc/{pid}/fd/{fd}").stat()
        file_stat = path.stat()
    except OSError:
        return False
    return (descriptor_stat.st_dev, descriptor_stat.st_ino) == (file_stat.st_dev, file_stat.st_ino)


def descendants_of(root: int) -> dict[int, ProcStat]:
    """Return all living processes below ``root`` by pid, parents before children; none if /proc cannot be
    read."""
    children: dict[int, list[int]] = defaultdict(list)
    stats: dict[int, ProcStat] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - names are enough
    except OSError:  # no more files may be open here
        return {}
    for name in names:
        if name.isdecimal() and (process_stat := read_stat(int(name))) is not None:
            stats[int(name)] = process_stat
            children[process_stat.ppid].append(int(name))
    below: dict[int, ProcStat] = {}
    queue = list(children[root])
    while queue:
        pid = queue.pop(0)
        if pid not in below:  # a pid that was reused between two reads could close a circle
            below[pid] = stats[pid]
            queue += children[pid]
    return below


def command_line(pid: int) -> list[str]:
    """Return the arguments of the process; empty if it has gone or has none."""
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    # A process that has overwritten its command line with a shorter one shows more zeros behind it.
    words = data.rstrip(b"\0").split(b"\0") if data else []
    return [word.decode("utf-8", "replace") for word in words]


def environment_variable(pid: int, name: str) -> str | None:
    """Return one variable of the environment that the process was started with; None if it is not
    set."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = name.encode() + b"="
    entry = next((v for v in data.split(b"\0") if v.startswith(prefix)), None)
    return None if entry is None else entry[len(prefix) :].decode("utf-8", "replace")


def initial_environment(pid: int) -> dict[str, str]:
    """Return the whole environment that the process was started with; empty if it has gone or is
    another user's. It holds secrets: never show or keep it."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in data.split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def socket_inodes(pid: int) -> Iterator[int]:
    """Yield the inodes of the sockets that the process has open; none if it has gone or is another
    user's."""
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            try:
                name = os.readlink(entry.path)  # noqa: PTH115 - many
            except OSError:
                continue  # closed meanwhile
            if name.startswith("socket:["):
                yield int(name[8:-1])
    except OSError:
        return
