"""Which mount a path is on, from mountinfo (proc(5))."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """``options`` are those of the mount and of the file system; ``source`` the device or export."""

    point: str
    filesystem: str
    options: str
    source: str


def mount_of(path: str, pid: str = "self") -> Mount | None:
    """The mount that holds ``path`` (absolute, no links) as this process sees it; None where it
    cannot be read. Touches no file system: it may be one that does not answer."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text(errors="replace").split("\n")
    except OSError:
        return None
    best: Mount | None = None
    for line in lines:
        left, _, right = line.partition(" - ")
        words, after = left.split(), right.split()
        if len(words) < 6 or len(after) < 3:
            continue
        point = words[4].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) >= len(best.point)):
            best = Mount(point, after[0], f"{words[5]},{after[2]}", after[1])
    return best
