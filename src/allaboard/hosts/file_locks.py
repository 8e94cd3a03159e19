"""Waits for file locks and their holders: /proc/locks, proc(5)."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from allaboard.facts import LockWait
from allaboard.late_pattern import compile_late

# "1: FLOCK ADVISORY WRITE 123 08:01:42 0 EOF"; a line with "->" waits for the one above it. Who waits
# behind another that waits is indented by one more space.
_LINE = compile_late(
    r"^(\d+): +(-> )?\S+\s+\S+\s+(\S+)\s+(-?\d+) ([0-9a-f]+:[0-9a-f]+):(\d+) ", re.MULTILINE
)


def lock_waits(text: str | None = None, members: Collection[int] = ()) -> tuple[LockWait, ...]:
    """Return every wait for a file lock on this host now, and those that ``members`` (pids) may have without
    the kernel's knowledge. ``text`` replaces /proc/locks in tests."""
    if text is None:
        try:
            text = Path("/proc/locks").read_text()
        except OSError:
            return ()
    holders: dict[str, list[int]] = {}
    waits: list[tuple[int, str, int]] = []
    writers: dict[int, set[int]] = defaultdict(set)
    for match in _LINE.finditer(text):
        number, waiting, pid, inode = match[1], match[2], int(match[4]), int(match[6])
        if waiting:
            waits.append((pid, number, inode))
        else:
            holders.setdefault(number, []).append(pid)
            if match[3] == "WRITE" and pid > 0:
                writers[inode].add(pid)
    kernel_waits = tuple(
        LockWait(pid, tuple(holders.get(number, ())), _path(pid, inode))
        for pid, number, inode in waits
    )
    waiters = {w.waiter for w in kernel_waits}
    return (*kernel_waits, *_polled(writers, [m for m in members if m not in waiters]))


def _polled(writers: dict[int, set[int]], members: Collection[int]) -> Iterator[LockWait]:
    """Yield for each of these processes the one lock that it may be asking for: of a file that it has open,
    or else the only one that the others hold. A library may close the file between two questions."""
    for pid in members if writers else ():
        locked_by = {inode: pids for inode, pids in writers.items() if pid not in pids}
        opened = _open_files(pid, locked_by)
        if not opened:
            locked_by = {inode: pids for inode, pids in locked_by.items() if pids & set(members)}
        inodes = list(opened or locked_by)
        if len(inodes) == 1:
            pids = tuple(sorted(locked_by[inodes[0]]))
            path = opened.get(inodes[0]) or _path(pids[0], inodes[0])
            yield LockWait(pid, pids, path, polls=True, has_open=bool(opened))


def _path(pid: int, inode: int) -> str:
    """Return the path by which the process has this inode open; "" if it cannot be read."""
    return _open_files(pid, (inode,)).get(inode, "")


def _open_files(pid: int, inodes: Collection[int]) -> dict[int, str]:
    """Return the paths of those of these inodes that the process has open, as far as they can be read."""
    folder = f"/proc/{pid}/fd"
    paths: dict[int, str] = {}
    try:
        for fd in os.listdir(folder) if inodes else ():  # noqa: PTH208 - names are enough
            inode = os.stat(f"{folder}/{fd}").st_ino  # noqa: PTH116 - one stat a descriptor
            if inode in inodes:
                paths[inode] = os.readlink(f"{folder}/{fd}")  # noqa: PTH115
    except OSError:
        pass
    return paths
