"""Logs that are not plain UTF-8: compressed, as log rotation leaves them, or in UTF-16."""

from __future__ import annotations

import bz2
import codecs
import lzma
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol

from allaboard.formats.line_ends import trim_head, trim_tail

GZIP_MAGIC = b"\x1f\x8b\x08"
"""First bytes of a gzip file with deflate, its only method (RFC 1952)."""
XZ_MAGIC, BZIP2_MAGIC = b"\xfd7zXZ\0", b"BZh"
"""First bytes of the files of xz (its file format, 1.1) and of bzip2."""
UNREADABLE_MAGICS = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"),
    b"Rar!\x1a\x07": ("RAR", "unrar x"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"),
}
"""First bytes of formats that Python's library does not unpack: their name, and the command that does."""
MAGIC_BYTES = 6
"""Bytes by which a format is recognised."""
UNPACK_TIMEOUT_S = 20.0
"""Seconds in which one file is unpacked, some 8 GiB.

A few kilobytes can hold any number of bytes, and the end of a log tells most.
"""
CHUNK_BYTES = 1 << 20
"""Unpacked bytes of one piece."""
READ_BYTES = 1 << 14
"""Packed bytes that are read at once. Where they are damaged, up to a chunk of their content is lost."""
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS
"""Tells zlib to expect gzip's header and check sum."""
STOPPED_MARK = b"\n(allaboard: what follows was not unpacked)\n"
"""Put after what was unpacked if the log goes on: nothing before it is the last line of a process."""


UNPACK_ERRORS = (zlib.error, lzma.LZMAError, EOFError, OSError)
"""Errors of a compressed file that is damaged or truncated; bz2 raises OSError."""
_XZ_MEMORY_BYTES = 256 << 20
"""Memory that a dictionary of xz may take; ``xz -9`` needs 65 MiB."""


class Readable(Protocol):
    """The part of a binary file that is needed to read it forward."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes, b"" at the end."""
        ...


class Unpacked(NamedTuple):
    """The content of a compressed file, as far as it was unpacked."""

    data: bytes
    """Its first and last bytes."""
    cut: int
    """Bytes that were left out of its middle."""
    trouble: str
    """Why the rest is missing, "" if all was unpacked."""
    has_long_line: bool = False
    """True if a line was cut that is longer than what is read of a log's beginning."""


def is_compressed(magic: bytes) -> bool:
    """Return True for the first bytes of a file that `unpacked_chunks` reads."""
    return magic.startswith((GZIP_MAGIC, XZ_MAGIC, BZIP2_MAGIC))


def unpack_file(
    file: Readable, head: int, tail: int, now: Callable[[], float] = time.monotonic
) -> Unpacked:
    """Return the first ``head`` and the last ``tail`` bytes of a compressed file, to whole lines.

    No more than that is kept in memory, however much the file holds. ``now`` returns seconds.
    """
    return keep_ends(unpacked_chunks(file), head, tail, now)


def keep_ends(
    chunks: Iterable[bytes], head: int, tail: int, now: Callable[[], float] = time.monotonic
) -> Unpacked:
    """Return the first ``head`` and the last ``tail`` bytes of these pieces, to whole lines.

    Errors of the pieces end it: what came before is returned. ``now`` returns seconds.
    """
    deadline = now() + UNPACK_TIMEOUT_S
    head_data, tail_data, unpacked_bytes, trouble = bytearray(), bytearray(), 0, ""
    try:
        for chunk in chunks:
            unpacked_bytes += len(chunk)
            room = head - len(head_data)
            head_data += chunk[:room]
            tail_data += chunk[room:]
            if len(tail_data) > 2 * tail:
                del tail_data[:-tail]
            if now() > deadline:
                trouble = f"{UNPACK_TIMEOUT_S:.0f} s are over"
                break
    except UNPACK_ERRORS as error:
        trouble = str(error)
    del tail_data[:-tail]
    cut = unpacked_bytes - len(head_data) - len(tail_data)
    long_line = 0
    if cut:
        trimmed, long_line = trim_head(bytes(head_data))
        head_data, tail_data = bytearray(trimmed), bytearray(trim_tail(bytes(tail_data)))
    message = (
        f"what follows after {unpacked_bytes >> 20} MiB was not unpacked: {trouble}"
        if trouble
        else ""
    )
    return Unpacked(bytes(head_data + tail_data), cut, message, bool(long_line))


def unpacked_chunks(file: Readable) -> Iterator[bytes]:
    """Yield the content of a compressed file, or of a plain one, in pieces of at most CHUNK_BYTES.

    Raises one of `UNPACK_ERRORS` if the file is truncated or damaged. The file is read forward only.
    """
    pieces = iter(lambda: file.read(READ_BYTES), b"")
    first = next(pieces, b"")
    pieces = chain((first,), pieces)
    if first.startswith(GZIP_MAGIC):
        yield from _gzip_chunks(pieces)
    elif first.startswith(XZ_MAGIC):
        yield from _part_chunks(pieces, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES))
    elif first.startswith(BZIP2_MAGIC):
        yield from _part_chunks(pieces, bz2.BZ2Decompressor)
    else:
        yield from pieces


def _part_chunks(
    pieces: Iterable[bytes], start: Callable[[], lzma.LZMADecompressor | bz2.BZ2Decompressor]
) -> Iterator[bytes]:
    """Yield the content of the parts of an xz or a bzip2 file; zeros between them are padding."""
    part: lzma.LZMADecompressor | bz2.BZ2Decompressor | None = None
    for packed in pieces:
        while packed:
            if part is None:
                packed = packed.lstrip(b"\0")
                part = start() if packed else None
            if part is None:
                break
            yield part.decompress(packed, CHUNK_BYTES)
            while not (part.eof or part.needs_input):
                yield part.decompress(b"", CHUNK_BYTES)
            packed = part.unused_data if part.eof else b""
            part = None if part.eof else part
    if part is not None:
        raise EOFError("it is torn off there")


def _gzip_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces of at most CHUNK_BYTES; empty ones for a bomb of empty members.

    Raises EOFError if the file is truncated, zlib.error if it is damaged.
    """
    inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)
    in_member = False
    for packed in pieces:
        while packed:
            if not in_member:
                packed = packed.lstrip(b"\0")  # the padding that may follow a part
                inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)
            in_member = bool(packed)
            # The bound keeps a bomb from filling the memory; the rest comes in the next turn.
            yield inflate.decompress(packed, CHUNK_BYTES)
            # What follows one part is the next: gzip files may be appended (RFC 1952, 2.2).
            packed = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            in_member = in_member and not inflate.eof
    if in_member:
        raise EOFError("it is torn off there")


def decode_to_utf8(data: bytes) -> bytes:
    """Return the text in UTF-8 without a byte order mark; unchanged if it has none."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data
