"""Logs that are not plain UTF-8: packed by gzip, as log rotation leaves them, or UTF-16."""

from __future__ import annotations

import codecs
import time
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

GZIP = b"\x1f\x8b\x08"
"""How RFC 1952 begins, with deflate, its one method."""
SECONDS = 20.0
"""In which a file is unpacked, some 8 GiB: a few kilobytes can hold any number, and its end tells most."""
CHUNK = 1 << 20
READ = 1 << 14
"""Packed bytes that are read at once; where they are damaged, up to a chunk of what they hold is lost."""
_WRAPPED = 16 + zlib.MAX_WBITS
"""How zlib is told of gzip's header and check sum."""
STOPPED = b"\n(allaboard: what follows was not unpacked)\n"
"""Put after what was unpacked where the log goes on: nothing before it is the last word of a process."""


class Unpacked(NamedTuple):
    """The ``data``, how many bytes were left out of its middle (``cut``), and why the ``rest`` is not here,
    "" where all was unpacked."""

    data: bytes
    cut: int
    rest: str


def unpacked(
    file: IO[bytes], head: int, tail: int, now: Callable[[], float] = time.monotonic
) -> Unpacked:
    """What a gzip file holds: its first ``head`` bytes and its last ``tail``, to whole lines. No more than
    that is kept of it, however much it holds; ``now`` tells the seconds."""
    late = now() + SECONDS
    first, last, done, rest = bytearray(), bytearray(), 0, ""
    try:
        for chunk in _chunks(file):
            done += len(chunk)
            room = head - len(first)
            first += chunk[:room]
            last += chunk[room:]
            if len(last) > 2 * tail:
                del last[:-tail]
            if now() > late:
                rest = f"{SECONDS:.0f} s are over"
                break
    except (zlib.error, EOFError) as error:
        rest = str(error)
    del last[:-tail]
    cut = done - len(first) - len(last)
    if cut:
        first, last = first.rpartition(b"\n")[0] + b"\n", last.partition(b"\n")[2]
    told = f"what follows after {done >> 20} MiB was not unpacked: {rest}" if rest else ""
    return Unpacked(bytes(first + last), cut, told)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Of no more than CHUNK bytes; of a bomb of empty parts, empty ones. Raises EOFError where the file is
    torn off, zlib.error where it is damaged."""
    inflate = zlib.decompressobj(_WRAPPED)
    begun = False
    while packed := file.read(READ):
        while packed:
            if not begun:
                packed = packed.lstrip(b"\0")  # the padding that may follow a part
                inflate = zlib.decompressobj(_WRAPPED)
            begun = bool(packed)
            yield inflate.decompress(packed, CHUNK)
            packed = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            begun = begun and not inflate.eof
    if begun:
        raise EOFError("it is torn off there")


def as_utf8(data: bytes) -> bytes:
    """The same text in UTF-8 without a byte order mark; as it is where there is none."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data
