"""Logs that are not plain UTF-8: packed by gzip, as log rotation leaves them, or UTF-16."""

from __future__ import annotations

import codecs
import gzip
import zlib
from typing import IO

GZIP = b"\x1f\x8b\x08"
"""How RFC 1952 begins, with deflate, its one method."""
MOST = 1 << 30
"""Bytes that are unpacked; a few kilobytes can hold any number."""
CHUNK = 1 << 20


def unpacked(file: IO[bytes], head: int, tail: int) -> tuple[bytes, int]:
    """What a gzip file holds: its first ``head`` bytes and its last ``tail``, to whole lines, and how many
    were left out between. What could not be unpacked, because it was torn off, is left out."""
    first, last, cut = b"", b"", 0
    with gzip.GzipFile(fileobj=file) as opened:
        done = 0
        while done < MOST:
            try:
                chunk = opened.read(CHUNK)
            except (OSError, EOFError, zlib.error):
                break
            if not chunk:
                break
            done += len(chunk)
            room = head - len(first)
            first, last = first + chunk[:room], last + chunk[room:]
            if len(last) > 2 * tail:
                cut, last = cut + len(last) - tail, last[-tail:]
    if len(last) > tail:
        cut, last = cut + len(last) - tail, last[-tail:]
    if cut:
        return first.rpartition(b"\n")[0] + b"\n" + last.partition(b"\n")[2], cut
    return first + last, 0


def as_utf8(data: bytes) -> bytes:
    """The same text in UTF-8 without a byte order mark; as it is where there is none."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data
