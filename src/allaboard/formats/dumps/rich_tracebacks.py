"""Tracebacks in the boxes of Python's rich, as many trainers' command lines print them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

BOX_HEAD = "Traceback (most recent call last) ─"
_TOP = re.compile(r"\s*[╭┌]─+ " + re.escape(BOX_HEAD) + r"+[╮┐]\s*$")
_END = re.compile(r"\s*[╰└]─+[╯┘]\s*$")
_FRAME = re.compile(r"\s*│ (/[^\s:]{1,1000}|<[\w ]+>):(\d{1,7}) in (\S{1,200})\s+│\s*$")
_ROW = re.compile(r"\s*│.*│\s*$")


def unbox_tracebacks(lines: Sequence[str]) -> list[str]:
    """The same lines, one for one: a box in the form of Python's own traceback, the others as they are."""
    found: list[str] = []
    inside = False
    for line in lines:
        if _TOP.match(line):
            inside = True
            found.append("Traceback (most recent call last):")
        elif inside and (frame := _FRAME.match(line)):
            found.append(f'  File "{frame[1]}", line {frame[2]}, in {frame[3]}')
        elif inside and (_ROW.match(line) or _END.match(line)):
            inside = not _END.match(line)
            found.append("    ")
        else:
            inside = False
            found.append(line)
    return found
