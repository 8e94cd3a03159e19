"""The file of a file:// rendezvous, as this host sees it."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

_LENGTH = struct.Struct("=I")
COUNT = b"refcount/"
"""The key that every client of a FileStore counts up by one; torch/csrc/distributed/c10d/FileStore.cpp."""
LARGEST = 1 << 24


def file_facts(place: str) -> dict[str, str]:
    """By name, what matters of the file of this ``file://`` URL: how many clients have joined it and
    when it was last written, or why it cannot be used. Empty for any other URL. May wait for a disk."""
    if not place.startswith("file://"):
        return {}
    path = Path(place.removeprefix("file://"))
    try:
        if not path.parent.is_dir():
            return {"rendezvous trouble": f"there is no folder {path.parent}"}
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            why = (
                "a read-only disk" if os.statvfs(path.parent).f_flag & os.ST_RDONLY else "no rights"
            )
            return {"rendezvous trouble": f"{path} cannot be written: {why}"}
        if not path.exists():
            return {}
        age = max(0.0, time.time() - path.stat().st_mtime)
        count = joined(path)
    except OSError as error:
        return {"rendezvous trouble": f"{path}: {error.strerror or error}"}
    return {"rendezvous joined": str(count), "rendezvous age": f"{age:.1f} s"} if count >= 0 else {}


def joined(path: Path) -> int:
    """How many clients have joined the FileStore in this file; -1 where it is none. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(LARGEST)
    at, count = 0, -1
    try:
        while at < len(data):
            key, at = _sized(data, at)
            value, at = _sized(data, at)
            if key == COUNT:
                count = int(value)
    except (struct.error, ValueError, IndexError):
        pass
    return count


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    end = at + _LENGTH.size + length
    if end > len(data):
        raise IndexError(end)
    return data[at + _LENGTH.size : end], end
