"""Reads the files of a run folder that somebody may have handed on: regular files only, in bounded pieces."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_LINE_NBYTES = 64 << 20
"""Bytes of a line that is read; a picture of ten thousand ranks with their stacks has some thirty million."""


def open_run_file(path: Path) -> BinaryIO:
    """Open a file of a run folder for reading. Raises OSError, also if it is no regular file."""
    # O_NONBLOCK: a named pipe of that name would block the reader.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def open_within(folder: Path, name: str) -> BinaryIO:
    """Open the file of this name for reading. Raises OSError, also if it lies outside of the folder: what
    a run folder names must not lead to a file of whoever reads it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise OSError(errno.EXDEV, "outside of the run folder", name)
    return open_run_file(path)


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its end, and the number of its bytes; one that is too long is the
    last one, as b"".

    A last line without its end is not yielded: its writer may not have finished it.
    """
    while line := file.readline(MAX_LINE_NBYTES):
        if line.endswith(b"\n"):
            yield len(line), line
            continue
        if len(line) == MAX_LINE_NBYTES:
            yield len(line), b""
        return
