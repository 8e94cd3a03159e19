"""Reader of the files and folders that a user names: bounded, and regular files only."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import IO

from allaboard.diagnosis.logs.foreign_files import RUN_FILES
from allaboard.diagnosis.logs.kernel_filesystems import is_kernel_path
from allaboard.diagnosis.logs.packed.archives import is_archive, read_archive
from allaboard.diagnosis.logs.packed.decompression import (
    MAGIC_BYTES,
    STOPPED_MARK,
    UNREADABLE_MAGICS,
    Unpacked,
    decode_to_utf8,
    is_compressed,
    unpack_file,
)
from allaboard.diagnosis.logs.rank_from_filename import rank_and_pid_from_name
from allaboard.errors import AllaboardError
from allaboard.facts import Exhibit
from allaboard.formats.dumps.docker_json import unwrap_docker_lines
from allaboard.formats.line_ends import KEPT_BYTES, MAX_OPEN_BYTES, trim_head, trim_tail

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
MAX_FOUND_ARCHIVE_BYTES = 64 << 20
"""Size up to which an archive is read that was found in a folder and not named itself: training data may be
kept in archives, too."""
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
            for exhibit in read_file(file, path, notes, now):
                bytes_left -= len(exhibit.data)
                if bytes_left < 0:
                    notes.append(
                        f"more than {MAX_TOTAL_BYTES >> 30} GiB; nothing was read from {file} on"
                    )
                    return
                yield exhibit


def read_file(
    file: Path, base: Path, notes: list[str], now: Callable[[], float] = time.monotonic
) -> Iterator[Exhibit]:
    """Yield one file, or all files of an archive; nothing, and a note, if it cannot be read.

    ``now`` returns seconds.
    """
    try:
        # Without O_NONBLOCK a FIFO that took the file's place meanwhile would hold us for ever.
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as opened:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return
            if is_archive(opened, file.name) and (
                file == base or status.st_size <= MAX_FOUND_ARCHIVE_BYTES
            ):
                yield from _archive_exhibits(file, base, opened, notes, now)
                return
            magic = opened.read(MAGIC_BYTES)
            opened.seek(0)
            if is_compressed(magic):
                content = unpack_file(opened, HEAD_BYTES, TAIL_BYTES, now)
            else:
                content = _read_ends(opened, status.st_size)
    except OSError as error:
        notes.append(f"{file}: {(error.strerror or str(error)).lower()}")
        return
    for first_bytes, (packer, command) in UNREADABLE_MAGICS.items():
        if magic.startswith(first_bytes):
            notes.append(
                f"{file}: packed by {packer}; unpack it first: {command} {quote(str(file))}"
            )
    yield _exhibit(file, base, content, notes)


def _read_ends(opened: IO[bytes], size: int) -> Unpacked:
    if size <= HEAD_BYTES + TAIL_BYTES:
        return Unpacked(opened.read(HEAD_BYTES + TAIL_BYTES), 0, "")
    head, long_line = trim_head(opened.read(HEAD_BYTES))
    opened.seek(size - TAIL_BYTES)
    data = head + trim_tail(opened.read(TAIL_BYTES))
    return Unpacked(data, size - len(data), "", bool(long_line))


def _archive_exhibits(
    file: Path, base: Path, opened: IO[bytes], notes: list[str], now: Callable[[], float]
) -> Iterator[Exhibit]:
    """Yield the files of an archive as if it were a folder."""
    archive_notes: list[str] = []
    has_run = False
    for member in read_archive(opened, HEAD_BYTES, TAIL_BYTES, archive_notes, now):
        # The name is foreign, and only a name: nothing is opened by it.
        inside = [p for p in PurePosixPath(member.name).parts if p not in ("/", "..")]
        has_run = has_run or RUN_FILES[0] in inside[-1:]
        yield _exhibit(
            file.joinpath(*inside), file if file == base else base, member.content, notes
        )
    notes += [f"{file}: {note}" for note in archive_notes]
    if has_run:
        notes.append(
            f"{file}: holds a run folder of allaboard, of which only the logs were read: unpack it, and "
            "name the folder"
        )


def _exhibit(file: Path, base: Path, content: Unpacked, notes: list[str]) -> Exhibit:
    data = unwrap_docker_lines(decode_to_utf8(content.data))
    if content.has_long_line:
        notes.append(f"{file}: {LONG_LINE}")
    if content.cut:
        notes.append(f"{file}: {content.cut} bytes in its middle were not read")
    if content.trouble:
        notes.append(f"{file}: {content.trouble}")
        data += STOPPED_MARK
    rank, pid = rank_and_pid_from_name(file, base)
    return Exhibit(name=str(file), data=data, rank=rank, pid=pid, cut=content.cut)


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
