"""The mount that a path is on, from mountinfo (proc(5))."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """One mount, as mountinfo lists it."""

    point: str
    """Where it is mounted."""
    filesystem: str
    """Type, for example ext4 or nfs4."""
    options: str
    """Options of the mount and of its file system."""
    source: str
    """Device or export."""


def mount_of(path: str, pid: str = "self") -> Mount | None:
    """Return the mount that holds ``path`` (absolute, no links) as this process sees it; None if it
    cannot be read.

    Touches no file system: the one in question may not answer.
    """
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text(errors="replace").split("\n")
    except OSError:
        return None
    best: Mount | None = None
    for line in lines:
        before_separator, _, after_separator = line.partition(" - ")
        mount_fields, filesystem_fields = before_separator.split(), after_separator.split()
        if len(mount_fields) < 6 or len(filesystem_fields) < 3:
            continue
        point = mount_fields[4].replace("\\040", " ")
        holds_path = path == point or path.startswith(point.rstrip("/") + "/")
        if holds_path and (best is None or len(point) >= len(best.point)):
            best = Mount(
                point,
                filesystem_fields[0],
                f"{mount_fields[5]},{filesystem_fields[2]}",
                filesystem_fields[1],
            )
    return best
