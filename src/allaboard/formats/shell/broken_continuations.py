"""Line ends of a shell script that were meant to join two lines of a command, and do not."""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK_AFTER_BACKSLASH = re.compile(r"\\[ \t]+\n(?=[ \t]*-)")
_COMMENT_LINES = re.compile(r"#[^\n]*\n(?:[ \t]*#[^\n]*\n)*(?=[ \t]*-)")
_JOINED_LINE_END = re.compile(r"(?<!\\)\\\n[ \t]*\Z")
_LONG_OPTION_LINE = re.compile(r"\n[ \t]*--[A-Za-z]")
_LOOKBEHIND_CHARS = 256
"""Characters before a comment in which the end of the line before it stands."""


class TornLine(NamedTuple):
    """Where a command ends for the shell and goes on for its reader; ``why``: blank, comment or end."""

    line: int
    column: int
    reason: str


def blank_continuation_end(text: str, offset: int) -> int:
    """Behind a backslash with blanks before its line end, where an option follows: the shell takes the
    first blank for a word, and the line for the command's last. 0 where there is none."""
    match = _BLANK_AFTER_BACKSLASH.match(text, offset)
    return match.end() if match else 0


def comment_continuation_end(text: str, offset: int) -> int:
    """Behind comment lines in the middle of a joined command: they end it. 0 where there is none."""
    match = _COMMENT_LINES.match(text, offset)
    return (
        match.end()
        if match and _JOINED_LINE_END.search(text[max(offset - _LOOKBEHIND_CHARS, 0) : offset])
        else 0
    )


def is_option_next(text: str, offset: int) -> bool:
    """Whether the line after this line end begins with a long option, as no command does."""
    return _LONG_OPTION_LINE.match(text, offset) is not None
