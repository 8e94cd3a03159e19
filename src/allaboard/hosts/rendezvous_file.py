"""The file of a file:// rendezvous, as this host sees it."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

_LENGTH = struct.Struct("=I")
CLIENT_COUNT_KEY = b"refcount/"
"""The key that every client of a FileStore counts up by one; torch/csrc/distributed/c10d/FileStore.cpp."""
MAX_FILE_BYTES = 1 << 24


def file_facts(url: str) -> dict[str, str]:
    """Return what matters of the file of this ``file://`` URL, by name: how many clients have
    joined it and when it was last written, or why it cannot be used. Empty for any other URL.
    May wait for a disk."""
    if not url.startswith("file://"):
        return {}
    path = Path(url.removeprefix("file://"))
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
        count = count_joined_clients(path)
    except OSError as error:
        return {"rendezvous trouble": f"{path}: {error.strerror or error}"}
    return {"rendezvous joined": str(count), "rendezvous age": f"{age:.1f} s"} if count >= 0 else {}


def count_joined_clients(path: Path) -> int:
    """Return how many clients have joined the FileStore in this file; -1 if it is none. Raises
    OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES)
    offset, count = 0, -1
    try:
        while offset < len(data):
            key, offset = _read_sized(data, offset)
            value, offset = _read_sized(data, offset)
            if key == CLIENT_COUNT_KEY:
                count = int(value)
    except (struct.error, ValueError, IndexError):
        pass
    return count


def _read_sized(data: bytes, offset: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(data, offset)
    end = offset + _LENGTH.size + length
    if end > len(data):
        raise IndexError(end)
    return data[offset + _LENGTH.size : end], end
