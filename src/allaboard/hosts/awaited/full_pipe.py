"""A full pipe that nobody reads, and who should: proc(5), pipe(7).

`Popen(stdout=PIPE)` with `wait()` ends so once the output is longer than a pipe holds (64 KiB), and `join()`
of a process whose queue nobody reads. A rank whose output goes to a `tee` or a pager that reads no more
stands at its next `print`.
"""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from allaboard.hosts.awaited.peers import find_holders, may_read

_WRITES = (1, 20) if platform.machine() == "x86_64" else (64, 66)
"""Numbers of write(2) and writev(2)."""
MAX_THREADS = 64
"""Threads of one process whose system calls are read."""


def child_at_full_pipe(pid: int, below: Iterable[int]) -> int:
    """Return the pid of a process among ``below`` that waits to write into a pipe which nobody but ``pid``
    (or that process itself) can read; 0 if there is none."""
    pipes = {child: set(_written_pipes(child)) for child in below}
    holders = find_holders(set().union(*pipes.values())) if any(pipes.values()) else {}
    for child, links in pipes.items():
        for link in links:
            readers = {p for p, fd in holders.get(link, ()) if may_read(p, fd)}
            if pid in readers and readers <= {pid, child}:
                return child
    return 0


def unread_pipe(pid: int) -> str:
    """Return for example ``pid 4711 (tee) to read the full pipe of its standard output`` if the main thread
    of the process waits to write into a pipe; "" if it does not, or if it is for us to read it."""
    descriptor = written_descriptor(f"/proc/{pid}/syscall")
    if descriptor is None:
        return ""
    path = f"/proc/{pid}/fd/{descriptor}"
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116 - not the link's own
            return ""
        link = os.readlink(path)  # noqa: PTH115 - no path
    except OSError:
        return ""
    readers = sorted(
        {p for p, fd in find_holders({link}).get(link, ()) if p != pid and may_read(p, fd)}
    )
    if os.getpid() in readers:
        return ""
    reader = f"pid {readers[0]}{_command_name(readers[0])}" if len(readers) == 1 else "somebody"
    pipe = f"the full named pipe {link}" if link.startswith("/") else "the full pipe"
    output = {1: " of its standard output", 2: " of its standard error"}.get(descriptor, "")
    return f"{reader} to read {pipe}{output}"


def _command_name(pid: int) -> str:
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return ""


def written_descriptor(syscall_file: str) -> int | None:
    """Return the descriptor that a thread waits to write to; None if it is in no write. Raises nothing."""
    try:
        fields = Path(syscall_file).read_text().split()
        return int(fields[1], 16) if int(fields[0]) in _WRITES else None
    except (OSError, ValueError, IndexError):
        return None  # it runs, has ended, or may not be examined


def _written_pipes(pid: int) -> Iterator[str]:
    """Yield the pipes into which threads of this process wait to write."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:MAX_THREADS]  # noqa: PTH208 - names are enough
    except OSError:
        return
    for thread in threads:
        descriptor = written_descriptor(f"/proc/{pid}/task/{thread}/syscall")
        if descriptor is None:
            continue
        try:
            link = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115 - no path
        except OSError:
            continue
        if link.startswith("pipe:["):
            yield link
