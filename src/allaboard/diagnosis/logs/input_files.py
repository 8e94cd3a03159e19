"""Reads what it is given, files and folders, as exhibits: bounded, regular files alone."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from allaboard.diagnosis.logs.decompression import GZIP, STOPPED, as_utf8, unpacked
from allaboard.diagnosis.logs.kernel_filesystems import of_the_kernel
from allaboard.diagnosis.logs.rank_from_filename import named
from allaboard.errors import AllaboardError
from allaboard.facts import Exhibit
from allaboard.formats.dumps.docker_json import unwrap_docker_lines

HEAD, TAIL = 8 << 20, 24 << 20
"""Bytes that are read of a larger file: its beginning, and its end, where it tells how it ended."""
SECONDS = 180.0
"""In which all is read and understood; what comes after is not."""
DEEPEST = 24
"""Folders within folders."""
FILES = 20_000
"""Files of one folder."""
TOTAL = 2 << 30
"""Bytes that are read in all."""
_SKIPPED = {".git", "__pycache__", ".venv", "node_modules"}


class MissingInputError(AllaboardError):
    """A path that cannot be read; the message says which, and why."""


def exhibits(
    paths: Iterable[Path], notes: list[str], now: Callable[[], float] = time.monotonic
) -> Iterator[Exhibit]:
    """Every file of these paths, in order; ``notes`` takes what could not be read, and why.
    Raises MissingInputError for a path that is not there. ``now`` tells the seconds."""
    left = TOTAL
    late = now() + SECONDS
    for path in paths:
        if not path.exists():
            raise MissingInputError(f"{path}: no such file or folder")
        for count, file in enumerate(_files(path, notes)):
            if now() > late:
                notes.append(f"{SECONDS:.0f} s are over; nothing was read from {file} on")
                return
            if count >= FILES:
                notes.append(f"{path}: more than {FILES} files; the others were not read")
                break
            exhibit = read(file, path, notes, now)
            if exhibit is None:
                continue
            left -= len(exhibit.data)
            if left < 0:
                notes.append(f"more than {TOTAL >> 30} GiB; nothing was read from {file} on")
                return
            yield exhibit


def read(
    file: Path, base: Path, notes: list[str], now: Callable[[], float] = time.monotonic
) -> Exhibit | None:
    """One file; None, and a note, where it cannot be read. ``now`` tells the seconds."""
    name = str(file)
    try:
        # Without O_NONBLOCK a FIFO that took the file's place meanwhile would hold us for ever.
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as opened:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            if opened.read(len(GZIP)) == GZIP:
                opened.seek(0)
                data, cut, rest = unpacked(opened, HEAD, TAIL, now)
                return _exhibit(file, base, data, cut, notes, rest)
            opened.seek(0)
            if found.st_size <= HEAD + TAIL:
                return _exhibit(file, base, opened.read(HEAD + TAIL), 0, notes)
            head = opened.read(HEAD).rpartition(b"\n")[0]
            opened.seek(found.st_size - TAIL)
            data = head + b"\n" + opened.read(TAIL).partition(b"\n")[2]
    except OSError as error:
        notes.append(f"{name}: {(error.strerror or str(error)).lower()}")
        return None
    return _exhibit(file, base, data, found.st_size - len(data), notes)


def _exhibit(
    file: Path, base: Path, data: bytes, cut: int, notes: list[str], rest: str = ""
) -> Exhibit:
    data = unwrap_docker_lines(as_utf8(data))
    if cut:
        notes.append(f"{file}: {cut} bytes in its middle were not read")
    if rest:
        notes.append(f"{file}: {rest}")
        data += STOPPED
    rank, pid = named(file, base)
    return Exhibit(name=str(file), data=data, rank=rank, pid=pid, cut=cut)


def _files(path: Path, notes: list[str]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return

    def closed(error: OSError) -> None:
        notes.append(f"{error.filename}: {(error.strerror or str(error)).lower()}")

    for folder, folders, names in os.walk(path, onerror=closed):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED)
        if folders and len(Path(folder).relative_to(path).parts) >= DEEPEST:
            notes.append(f"{folder}: {len(folders)} folders in it, too deep; they were not read")
            folders.clear()
        if own := [f for f in folders if of_the_kernel(f"{folder}/{f}")]:
            notes.append(f"{folder}: {', '.join(own)}: the kernel's own; not read")
            folders[:] = [f for f in folders if f not in own]
        for name in sorted(names, key=_natural):
            file = Path(folder) / name
            try:
                regular = file.is_file()
            except OSError as error:  # a link into a folder that may not be looked into
                closed(error)
                continue
            if regular:
                yield file


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d{1,9})", name)]
