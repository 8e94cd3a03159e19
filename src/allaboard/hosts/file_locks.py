"""Waits for file locks and their holders: /proc/locks, proc(5)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from allaboard.facts import LockWait

# "1: FLOCK ADVISORY WRITE 123 08:01:42 0 EOF"; a line with "->" waits for the one above it. Who waits
# behind another that waits is indented by one more space.
_LINE = re.compile(r"^(\d+): +(-> )?\S+\s+\S+\s+\S+\s+(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ")


def lock_waits(text: str | None = None) -> tuple[LockWait, ...]:
    """Return every wait for a file lock on this host now. ``text`` replaces /proc/locks in tests."""
    if text is None:
        try:
            text = Path("/proc/locks").read_text()
        except OSError:
            return ()
    holders: dict[str, list[int]] = {}
    waits: list[tuple[int, str, int]] = []
    for line in text.splitlines():
        if not (match := _LINE.match(line)):
            continue
        number, waiting, pid, inode = match[1], match[2], int(match[3]), int(match[6])
        if waiting:
            waits.append((pid, number, inode))
        else:
            holders.setdefault(number, []).append(pid)
    return tuple(
        LockWait(pid, tuple(holders.get(number, ())), _path(pid, inode))
        for pid, number, inode in waits
    )


def _path(pid: int, inode: int) -> str:
    """Return the path by which the process has this inode open; "" if it cannot be read."""
    folder = f"/proc/{pid}/fd"
    try:
        for fd in os.listdir(folder):  # noqa: PTH208 - names are enough
            if os.stat(f"{folder}/{fd}").st_ino == inode:  # noqa: PTH116 - one stat a descriptor
                return os.readlink(f"{folder}/{fd}")  # noqa: PTH115
    except OSError:
        pass
    return ""
