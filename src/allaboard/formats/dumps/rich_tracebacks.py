"""Tracebacks in the boxes of Python's rich, as many trainers' command lines print them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

BOX_HEAD = "Traceback (most recent call last) ─"
_TOP = re.compile(r"\s*[╭┌]─+ " + re.escape(BOX_HEAD) + r"+[╮┐]\s*$")
_END = re.compile(r"\s*[╰└]─+[╯┘]\s*$")
_FRAME = re.compile(r"\s*│ (/[^\s:]{1,1000}|<[\w ]+>):(\d{1,7}) in (\S{1,200})\s+│\s*$")
_BEGUN = re.compile(r"\s*│ (/[^\s:│]{8,1000}) +│\s*$")
_REST = re.compile(r"\s*│ ([^\s:│]{1,1000}:\d{1,7} in \S{1,200})\s+│\s*$")
"""A path that the box broke at its width, and the rest of it in the next row."""
_ROW = re.compile(r"\s*│.*│\s*$")


def unbox_tracebacks(lines: Sequence[str]) -> list[str]:
    """Return the same lines, one for one, with each box in the form of Python's own traceback."""
    lines_out: list[str] = []
    in_box = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if in_box and (begun := _BEGUN.match(line)) and (rest := _REST.match(below)):
            line = f"│ {begun[1]}{rest[1]} │"
        if _TOP.match(line):
            in_box = True
            lines_out.append("Traceback (most recent call last):")
        elif in_box and (frame := _FRAME.match(line)):
            lines_out.append(f'  File "{frame[1]}", line {frame[2]}, in {frame[3]}')
        elif in_box and (_ROW.match(line) or _END.match(line)):
            in_box = not _END.match(line)
            lines_out.append("    ")
        else:
            in_box = False
            lines_out.append(line)
    return lines_out
