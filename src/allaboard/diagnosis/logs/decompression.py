"""Logs that are not plain UTF-8: packed by gzip, as log rotation leaves them, or in UTF-16."""

from __future__ import annotations

import codecs
import time
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from allaboard.formats.line_ends import trim_head, trim_tail

GZIP_MAGIC = b"\x1f\x8b\x08"
"""First bytes of a gzip file with deflate, its only method (RFC 1952)."""
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


class Unpacked(NamedTuple):
    """The content of a gzip file, as far as it was unpacked."""

    data: bytes
    """Its first and last bytes."""
    cut: int
    """Bytes that were left out of its middle."""
    trouble: str
    """Why the rest is missing, "" if all was unpacked."""
    has_long_line: bool = False
    """True if a line was cut that is longer than what is read of a log's beginning."""


def unpack_gzip(
    file: IO[bytes], head: int, tail: int, now: Callable[[], float] = time.monotonic
) -> Unpacked:
    """Return the first ``head`` and the last ``tail`` bytes of a gzip file, to whole lines.

    No more than that is kept in memory, however much the file holds. ``now`` returns seconds.
    """
    deadline = now() + UNPACK_TIMEOUT_S
    head_data, tail_data, unpacked_bytes, trouble = bytearray(), bytearray(), 0, ""
    try:
        for chunk in _chunks(file):
            unpacked_bytes += len(chunk)
            room = head - len(head_data)
            head_data += chunk[:room]
            tail_data += chunk[room:]
            if len(tail_data) > 2 * tail:
                del tail_data[:-tail]
            if now() > deadline:
                trouble = f"{UNPACK_TIMEOUT_S:.0f} s are over"
                break
    except (zlib.error, EOFError) as error:
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


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield pieces of at most CHUNK_BYTES; empty ones for a bomb of empty members.

    Raises EOFError if the file is truncated, zlib.error if it is damaged.
    """
    inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)
    in_member = False
    while packed := file.read(READ_BYTES):
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
