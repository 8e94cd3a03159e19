"""The file to which a process writes its errors, if it is one that can be read: what nohup and Slurm keep."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAX_TAIL_BYTES = 16_384
"""Bytes at the end of the file that are read."""


def output_file(pid: int) -> tuple[int, int] | None:
    """Return device and inode of the regular file that is its standard error; None if that is none."""
    try:
        status = Path(f"/proc/{pid}/fd/2").stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def read_output_tail(pid: int) -> str:
    """Return the end of the regular file that is the process's standard error; "" if that is none."""
    path = Path(f"/proc/{pid}/fd/2")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_TAIL_BYTES))
            return file.read(MAX_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
