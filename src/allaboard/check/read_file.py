"""Reads one file within bounds; what is wrong with it as text is a problem of the file."""

from __future__ import annotations

import os
import stat
import sys
from codecs import BOM_UTF8
from dataclasses import dataclass

from allaboard.facts import Origin, Problem

MAX_FILE_NBYTES = 16 * 2**20
"""Bytes of a file that are read. The TF_CONFIG of a hundred thousand tasks has four million."""


@dataclass(frozen=True)
class Source:
    """A file's text with Unix line ends and without a byte order mark, and what was wrong with it."""

    name: str
    """The path as the user gave it, or "<stdin>"."""
    text: str
    windows_line_end: tuple[int, int] | None = None
    """Line and column of the first Windows line end; None if there is none."""
    problem: Problem | None = None
    """Why the file is no text; None if it is. Then ``text`` is empty."""
    has_byte_order_mark: bool = False


def read_source(path: str) -> Source:
    """Return the text of a file, or of standard input for ``-``.

    Raises:
        OSError: the file does not exist or may not be read.
    """
    if path == "-":
        return _decode("<stdin>", sys.stdin.buffer.read(MAX_FILE_NBYTES + 1))
    # A FIFO without a writer would block the open for ever.
    pipe = path.startswith("/dev/fd/")
    descriptor = os.open(path, os.O_RDONLY | (0 if pipe else os.O_NONBLOCK))
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(21, "is a folder; name the files in it", path)
        if stat.S_ISREG(os.fstat(descriptor).st_mode) or pipe:
            return _decode(path, _read_bytes(descriptor))
    finally:
        os.close(descriptor)
    return Source(path, "", problem=_unreadable(path, "is no regular file", "(not read)", 0, 0))


def _read_bytes(descriptor: int) -> bytes:
    parts: list[bytes] = []
    remaining = MAX_FILE_NBYTES + 1
    while remaining > 0:
        part = os.read(descriptor, min(remaining, 2**20))
        if not part:
            break
        parts.append(part)
        remaining -= len(part)
    return b"".join(parts)


def _decode(name: str, data: bytes) -> Source:
    if len(data) > MAX_FILE_NBYTES:
        problem_text = f"is larger than {MAX_FILE_NBYTES // 2**20} MB; nothing of it was judged"
        return Source(name, "", problem=_unreadable(name, problem_text, "", 0, 0))
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problem_text = "is UTF-16; configurations are UTF-8"
        return Source(name, "", problem=_unreadable(name, problem_text, repr(data[:8]), 1, 1))
    nul_offset = data.find(b"\0")
    try:
        if nul_offset >= 0:
            raise UnicodeDecodeError("utf-8", data, nul_offset, nul_offset + 1, "a zero byte")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        preceding = data[: error.start]
        line = preceding.count(b"\n") + 1
        column = error.start - (preceding.rfind(b"\n") + 1) + 1
        byte = data[error.start : error.start + 1].hex()
        problem_text = "is not UTF-8 text"
        problem = _unreadable(
            name, problem_text, f"byte 0x{byte} at offset {error.start}", line, column
        )
        return Source(name, "", problem=problem)
    first_crlf = text.find("\r\n")
    crlf = (
        (text.count("\n", 0, first_crlf) + 1, first_crlf - text.rfind("\n", 0, first_crlf))
        if first_crlf >= 0
        else None
    )
    return Source(
        name,
        text.replace("\r\n", "\n"),
        windows_line_end=crlf,
        has_byte_order_mark=data[:3] == BOM_UTF8,
    )


def _unreadable(name: str, problem_text: str, observed: str, line: int, column: int) -> Problem:
    return Problem(
        kind="unreadable",
        message=problem_text,
        observed=observed or problem_text,
        correction="give a TF_CONFIG, a manifest, a hostfile or a script as UTF-8 text",
        origin=Origin(file=name, line=line, column=column),
    )
