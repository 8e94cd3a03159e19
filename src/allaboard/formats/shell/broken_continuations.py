"""Line ends of a shell script that were meant to join two lines of a command, and do not."""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK = re.compile(r"\\[ \t]+\n(?=[ \t]*-)")
_COMMENT = re.compile(r"#[^\n]*\n(?:[ \t]*#[^\n]*\n)*(?=[ \t]*-)")
_JOINED = re.compile(r"(?<!\\)\\\n[ \t]*\Z")
_OPTION = re.compile(r"\n[ \t]*--[A-Za-z]")
_BACK = 256
"""Characters before a comment in which the end of the line before it stands."""


class Torn(NamedTuple):
    """Where a command ends for the shell and goes on for its reader; ``why``: blank, comment or end."""

    line: int
    column: int
    why: str


def after_blank(text: str, at: int) -> int:
    """Behind a backslash with blanks before its line end, where an option follows: the shell takes the
    first blank for a word, and the line for the command's last. 0 where there is none."""
    found = _BLANK.match(text, at)
    return found.end() if found else 0


def after_comment(text: str, at: int) -> int:
    """Behind comment lines in the middle of a joined command: they end it. 0 where there is none."""
    found = _COMMENT.match(text, at)
    return found.end() if found and _JOINED.search(text[max(at - _BACK, 0) : at]) else 0


def option_next(text: str, at: int) -> bool:
    """Whether the line after this line end begins with a long option, as no command does."""
    return _OPTION.match(text, at) is not None
