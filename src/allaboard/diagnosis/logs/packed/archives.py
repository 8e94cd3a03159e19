"""The files in an archive: tar (compressed or not) and zip, read in place. Nothing is written to a disk.

An archive comes from somebody else: it may hold more than fits into memory, links, and headers that claim
anything. It is read forward only, no read is larger than `MAX_READ_BYTES`, and after `ARCHIVE_TIMEOUT_S`
reading stops. Only regular files are read, so that where a link leads does not matter.
"""

from __future__ import annotations

import contextlib
import math
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from allaboard.diagnosis.logs.packed.decompression import (
    CHUNK_BYTES,
    UNPACK_ERRORS,
    Readable,
    Unpacked,
    keep_ends,
    unpacked_chunks,
)
from allaboard.errors import AllaboardError

ARCHIVE_TIMEOUT_S = 60.0
"""Seconds in which one archive is read."""
MAX_READ_BYTES = 16 << 20
"""Largest read: a header of tar may claim a name of many gigabytes."""
MAX_MEMBERS = 20_000
"""Files that are read of one archive."""
_TAR_BLOCK_BYTES = 512
_USTAR_AT, _USTAR = 257, b"ustar"
"""Where a header of tar says what it is: POSIX.1-2017, pax, "ustar Interchange Format"."""
_ZIP_MAGIC = b"PK\x03\x04"
_ZIP_SUFFIX = ".zip"
"""End of an archive's name. Checkpoints, wheels and spreadsheets are zip files, too, and hold no logs."""


class ArchiveError(AllaboardError):
    """An archive cannot be read on; the message says why."""


class ArchiveMember(NamedTuple):
    """One file of an archive."""

    name: str
    """Its path in the archive."""
    content: Unpacked
    """Its first and last bytes."""


class ForwardStream:
    """The content of a compressed or plain file, as a file that can only be read forward.

    ``now`` returns seconds; after ``deadline`` each read raises ArchiveError.
    """

    def __init__(self, file: IO[bytes], deadline: float, now: Callable[[], float]) -> None:
        self._chunks = unpacked_chunks(file)
        self._deadline, self._now = deadline, now
        self._buffer = b""
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, fewer at the end. Raises ArchiveError if it takes too long or is too much."""
        if not 0 <= size <= MAX_READ_BYTES:
            raise ArchiveError("a header in it claims more than any log has")
        while len(self._buffer) < size and (chunk := self._next_chunk()) is not None:
            self._buffer += chunk
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        self._position += len(taken)
        return taken

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._position

    def seek(self, position: int, whence: int = 0) -> int:
        """Skip to a later position. Raises ArchiveError for an earlier one."""
        if whence or position < self._position:
            raise ArchiveError("its headers lead back")
        while self._position < position:
            if not self.read(min(position - self._position, CHUNK_BYTES)):
                break
        return self._position

    def _next_chunk(self) -> bytes | None:
        if self._now() > self._deadline:
            raise ArchiveError(f"{ARCHIVE_TIMEOUT_S:.0f} s are over")
        try:
            return next(self._chunks, None)
        except UNPACK_ERRORS as error:
            raise ArchiveError(str(error)) from None


def is_archive(file: IO[bytes], name: str) -> bool:
    """Return True if this file is an archive that `read_archive` reads; it is left at its beginning."""
    is_zip = file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
    file.seek(0)
    if is_zip and name.lower().endswith(_ZIP_SUFFIX):
        return True
    block = b""
    with contextlib.suppress(ArchiveError):
        block = ForwardStream(file, math.inf, time.monotonic).read(_TAR_BLOCK_BYTES)
    file.seek(0)
    return block[_USTAR_AT : _USTAR_AT + len(_USTAR)] == _USTAR


def read_archive(
    file: IO[bytes],
    head: int,
    tail: int,
    notes: list[str],
    now: Callable[[], float] = time.monotonic,
) -> Iterator[ArchiveMember]:
    """Yield the regular files of an archive, of each its first ``head`` and last ``tail`` bytes.

    Adds to ``notes`` why something was not read. ``now`` returns seconds.
    """
    deadline = now() + ARCHIVE_TIMEOUT_S
    is_zip = file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
    file.seek(0)
    members = _zip_files(file) if is_zip else _tar_files(ForwardStream(file, deadline, now))
    try:
        for count, (name, opened) in enumerate(members):
            if count >= MAX_MEMBERS:
                notes.append(f"more than {MAX_MEMBERS} files; the others were not read")
                return
            if now() > deadline:
                raise ArchiveError(f"{ARCHIVE_TIMEOUT_S:.0f} s are over")
            yield ArchiveMember(name, keep_ends(_inner_chunks(opened), head, tail, now))
    except (ArchiveError, tarfile.TarError, zipfile.BadZipFile, *UNPACK_ERRORS) as error:
        notes.append(f"the rest of the archive was not read: {error}")
    except RecursionError:
        notes.append("the rest of the archive was not read: its headers are nested without end")
    except RuntimeError as error:  # a password, or an unusual compression (NotImplementedError)
        notes.append(f"the rest of the archive was not read: {error}; unpack it first")


class _TarContent:
    """The content of one regular file of a tar archive, from where the stream is."""

    def __init__(self, stream: ForwardStream, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int) -> bytes:
        """Return up to so many bytes, b"" at the end. Raises EOFError if the archive ends before."""
        taken = self._stream.read(min(size, self._left))
        if not taken and self._left:
            raise EOFError("it is torn off there")
        self._left -= len(taken)
        return taken


def _tar_files(stream: ForwardStream) -> Iterator[tuple[str, Readable]]:
    with tarfile.TarFile(fileobj=stream, mode="r", errorlevel=1) as archive:  # type: ignore[arg-type]
        while (member := archive.next()) is not None:
            # TarFile keeps every header that it has read: there may be millions.
            archive.members = []  # type: ignore[attr-defined]
            if member.isreg() and not member.issparse():
                # Not `extractfile`, which loses the last piece of a truncated archive.
                stream.seek(member.offset_data)
                yield member.name, _TarContent(stream, member.size)


def _zip_files(file: IO[bytes]) -> Iterator[tuple[str, Readable]]:
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                with archive.open(entry) as opened:
                    yield entry.filename, opened


def _inner_chunks(opened: Readable) -> Iterator[bytes]:
    """Yield the content of a file of an archive, which may be compressed by itself.

    Raises EOFError where the archive cannot be read on: what came before is kept.
    """
    try:
        yield from unpacked_chunks(opened)
    except (ArchiveError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise EOFError(str(error)) from None
