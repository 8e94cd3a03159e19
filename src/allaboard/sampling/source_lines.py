"""The source text of programs that are sampled."""

from __future__ import annotations

import linecache
import stat
from pathlib import Path

from allaboard.facts import Frame


def is_readable_source(path: str) -> bool:
    """Return False for a pipe, a terminal or a device: a program that was read from one
    (``python /dev/stdin``) names it as its file, and to open ours would wait for our own input."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return True  # what is not there can do no harm


def source_lines(path: str) -> list[str]:
    """Return the lines of a source file, kept as they were first read; [] if it cannot be read."""
    return linecache.getlines(path) if is_readable_source(path) else []


def source_line(path: str, line: int) -> str:
    """Return one line of a source file, counted from 1, without its indentation, at most 200 characters; ""
    if there is none."""
    lines = source_lines(path)
    return lines[line - 1].strip()[:200] if 1 <= line <= len(lines) else ""


def with_source(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the frames with source lines for the user's own ones, and for what was compiled from
    them."""
    return tuple(
        Frame(f.file, f.line, f.function, source_line(f.file, f.line))
        if f.is_user or f.is_compiled
        else f
        for f in frames
    )
