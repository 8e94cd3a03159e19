"""A child that waits to write into a full pipe whose reader waits for the child: proc(5), pipe(7).

`Popen(stdout=PIPE)` with `wait()` ends so once the output is longer than a pipe holds (64 KiB), and `join()`
of a process whose queue nobody reads.
"""

from __future__ import annotations

import os
import platform
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


def _written_pipes(pid: int) -> Iterator[str]:
    """Yield the pipes into which threads of this process wait to write."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:MAX_THREADS]  # noqa: PTH208 - names are enough
    except OSError:
        return
    for thread in threads:
        try:
            fields = Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()
            if int(fields[0]) not in _WRITES:
                continue
            link = os.readlink(f"/proc/{pid}/fd/{int(fields[1], 16)}")  # noqa: PTH115 - no path
        except (OSError, ValueError, IndexError):
            continue  # it runs, has ended, or may not be examined
        if link.startswith("pipe:["):
            yield link
