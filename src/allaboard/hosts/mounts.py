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
