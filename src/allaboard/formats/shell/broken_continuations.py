"""Line ends of a shell script that should join two lines of one command, but do not."""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK_AFTER_BACKSLASH = re.compile(r"\\[ \t]+(?:#[^\n]*)?\n(?=[ \t]*-)")
_COMMENT_LINES = re.compile(r"#[^\n]*\n(?:[ \t]*#[^\n]*\n)*(?=[ \t]*-)")
_JOINED_LINE_END = re.compile(r"(?<!\\)\\\n[ \t]*\Z")
_LONG_OPTION_LINE = re.compile(r"\n[ \t]*--[A-Za-z]")
_LOOKBEHIND_CHARS = 256
"""Number of characters before a comment in which the end of the previous line is searched."""


class TornLine(NamedTuple):
    """The position at which a command ends for the shell, although its author meant it to go on."""

    line: int
    """Line, from 1."""
    column: int
    """Column in characters, from 1."""
    reason: str
    """"blank": blanks follow the backslash; "remark": a comment follows it; "comment": a comment line stands
    in the middle; "end": there is no backslash."""


def blank_continuation_end(text: str, offset: int) -> int:
    """Return the offset after a backslash, blanks, perhaps a comment, and a line end that an option follows,
    or 0 if there are none at the offset. The shell takes the first blank for a word, and the line for
    the last one of the command."""
    match = _BLANK_AFTER_BACKSLASH.match(text, offset)
    return match.end() if match else 0


def comment_continuation_end(text: str, offset: int) -> int:
    """Return the offset after the comment lines at the offset that stand in the middle of a joined
    command, or 0 if there are none. They end the command."""
    match = _COMMENT_LINES.match(text, offset)
    return (
        match.end()
        if match and _JOINED_LINE_END.search(text[max(offset - _LOOKBEHIND_CHARS, 0) : offset])
        else 0
    )


def is_option_next(text: str, offset: int) -> bool:
    """Return True if the line after this line end begins with a long option, as no command does."""
    return _LONG_OPTION_LINE.match(text, offset) is not None
