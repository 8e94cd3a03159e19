"""Reader of the files and folders that a user names: bounded, and regular files only."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from allaboard.diagnosis.logs.decompression import (
    GZIP_MAGIC,
    STOPPED_MARK,
    decode_to_utf8,
    unpack_gzip,
)
from allaboard.diagnosis.logs.kernel_filesystems import is_kernel_path
from allaboard.diagnosis.logs.rank_from_filename import rank_and_pid_from_name
from allaboard.errors import AllaboardError
from allaboard.facts import Exhibit
from allaboard.formats.dumps.docker_json import unwrap_docker_lines
from allaboard.formats.line_ends import (
    KEPT_BYTES,
    MAX_OPEN_BYTES,
    trim_head,
    trim_tail,
)

HEAD_BYTES, TAIL_BYTES = 8 << 20, 24 << 20
"""Bytes that are read from the beginning of a larger file, and from its end, where a log says how its process
ended."""
LONG_LINE = (
    f"a line that is longer than {MAX_OPEN_BYTES >> 20} MiB was read up to its byte {KEPT_BYTES}"
)
"""What is said of a line that costs more than it can tell."""
READ_TIMEOUT_S = 180.0
"""Seconds in which everything is read and understood; what comes after is skipped."""
MAX_DEPTH = 24
"""Levels of nested folders."""
MAX_FILES = 20_000
"""Files of one folder."""
MAX_TOTAL_BYTES = 2 << 30
"""Bytes that are read in all."""
_SKIPPED = {".git", "__pycache__", ".venv", "node_modules"}


class MissingInputError(AllaboardError):
    """A path that cannot be read; the message says which, and why."""


def read_exhibits(
    paths: Iterable[Path], notes: list[str], now: Callable[[], float] = time.monotonic
) -> Iterator[Exhibit]:
    """Yield every file of these paths, in order; add to ``notes`` what could not be read, and why.

    Raises MissingInputError for a path that does not exist. ``now`` returns seconds.
    """
    bytes_left = MAX_TOTAL_BYTES
    deadline = now() + READ_TIMEOUT_S
    for path in paths:
        if not path.exists():
            raise MissingInputError(f"{path}: no such file or folder")
        for count, file in enumerate(_files(path, notes)):
            if now() > deadline:
                notes.append(f"{READ_TIMEOUT_S:.0f} s are over; nothing was read from {file} on")
                return
            if count >= MAX_FILES:
                notes.append(f"{path}: more than {MAX_FILES} files; the others were not read")
                break
            exhibit = read_file(file, path, notes, now)
            if exhibit is None:
                continue
            bytes_left -= len(exhibit.data)
            if bytes_left < 0:
                notes.append(
                    f"more than {MAX_TOTAL_BYTES >> 30} GiB; nothing was read from {file} on"
                )
                return
            yield exhibit


def read_file(
    file: Path, base: Path, notes: list[str], now: Callable[[], float] = time.monotonic
) -> Exhibit | None:
    """Return one file; None, and a note, if it cannot be read. ``now`` returns seconds."""
    name = str(file)
    try:
        # Without O_NONBLOCK a FIFO that took the file's place meanwhile would hold us for ever.
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as opened:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return None
            if opened.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
                opened.seek(0)
                unpacked = unpack_gzip(opened, HEAD_BYTES, TAIL_BYTES, now)
                if unpacked.has_long_line:
                    notes.append(f"{file}: {LONG_LINE}")
                return _exhibit(file, base, unpacked.data, unpacked.cut, notes, unpacked.trouble)
            opened.seek(0)
            if status.st_size <= HEAD_BYTES + TAIL_BYTES:
                return _exhibit(file, base, opened.read(HEAD_BYTES + TAIL_BYTES), 0, notes)
            head, long_line = trim_head(opened.read(HEAD_BYTES))
            opened.seek(status.st_size - TAIL_BYTES)
            data = head + trim_tail(opened.read(TAIL_BYTES))
            if long_line:
                notes.append(f"{file}: {LONG_LINE}")
    except OSError as error:
        notes.append(f"{name}: {(error.strerror or str(error)).lower()}")
        return None
    return _exhibit(file, base, data, status.st_size - len(data), notes)


def _exhibit(
    file: Path, base: Path, data: bytes, cut: int, notes: list[str], trouble: str = ""
) -> Exhibit:
    data = unwrap_docker_lines(decode_to_utf8(data))
    if cut:
        notes.append(f"{file}: {cut} bytes in its middle were not read")
    if trouble:
        notes.append(f"{file}: {trouble}")
        data += STOPPED_MARK
    rank, pid = rank_and_pid_from_name(file, base)
    return Exhibit(name=str(file), data=data, rank=rank, pid=pid, cut=cut)


def _files(path: Path, notes: list[str]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return

    def closed(error: OSError) -> None:
        notes.append(f"{error.filename}: {(error.strerror or str(error)).lower()}")

    # Links to folders are not followed (os.walk's default): there may be circles of them.
    for folder, folders, names in os.walk(path, onerror=closed):
        # In place: os.walk goes on into what this list holds.
        folders[:] = sorted(f for f in folders if f not in _SKIPPED)
        if folders and len(Path(folder).relative_to(path).parts) >= MAX_DEPTH:
            notes.append(f"{folder}: {len(folders)} folders in it, too deep; they were not read")
            folders.clear()
        if kernel_folders := [f for f in folders if is_kernel_path(f"{folder}/{f}")]:
            notes.append(f"{folder}: {', '.join(kernel_folders)}: the kernel's own; not read")
            folders[:] = [f for f in folders if f not in kernel_folders]
        for name in sorted(names, key=_natural_key):
            file = Path(folder) / name
            try:
                regular = file.is_file()
            except OSError as error:  # a link into a folder that may not be looked into
                closed(error)
                continue
            if regular:
                yield file


def _natural_key(name: str) -> list[tuple[int, str]]:
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in re.split(r"(\d{1,9})", name)]
