"""Text for a terminal or a pipe: control characters made visible, long lines wrapped at words."""

from __future__ import annotations

import os
import re
from typing import TextIO

DEFAULT_WIDTH = 100
"""Columns of a line where nothing says how wide the output is: a pipe, a file, a batch job."""
MIN_WIDTH = 20
"""Columns below which lines are not wrapped any tighter."""
_CLAUSE = re.compile(r"(?<=[;,:]) (?! )|(?<=\s)(?=# )")
"""Where a fix may be broken without tearing a command: between clauses, and before a comment."""


def clean(text: str) -> str:
    """Return the text as one line that cannot drive a terminal.

    Names and messages come from files and from other processes. Line breaks and tabs become spaces; other
    control, format and invalid characters are written as Python would (``\\x1b``).
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t" else repr(c)[1:-1] for c in text)


def output_width(stream: int) -> int:
    """Return the columns of what this descriptor writes to: from COLUMNS, from the terminal, or 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return max(MIN_WIDTH, int(columns))
    try:
        return max(MIN_WIDTH, os.get_terminal_size(stream).columns or DEFAULT_WIDTH)
    except OSError:
        return DEFAULT_WIDTH


def obeys_escapes(stream: TextIO) -> bool:
    """Return True if the stream is a terminal that can move its cursor and change colours."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def allows_colours() -> bool:
    """Return True unless the user has asked for none (https://no-color.org)."""
    return not os.environ.get("NO_COLOR")


def shows_colours(stream: TextIO) -> bool:
    """Return True if text on this stream may be coloured."""
    return obeys_escapes(stream) and allows_colours()


def wrap_words(text: str, width: int, prefix: str = "", indent: str = "") -> list[str]:
    """Return the text in lines of at most ``width`` columns, broken between words only.

    The first line begins with ``prefix``, all others with ``indent``. A word that is longer than a line, such
    as a path, is kept whole, so that it can be copied.
    """
    return _fill(text.split(" "), width, prefix, indent)


def wrap_clauses(text: str, width: int, prefix: str = "", indent: str = "") -> list[str]:
    """Return the text wrapped like `wrap_words`, but broken between clauses where they fit in a line.

    A command to paste is rarely longer than a line: it is moved to the next one rather than torn.
    """
    words: list[str] = []
    for clause in _CLAUSE.split(text):
        fits = len(indent) + len(clause.rstrip()) <= width
        words += [clause] if fits else clause.split(" ")
    return _fill(words, width, prefix, indent)


def _fill(words: list[str], width: int, prefix: str, indent: str) -> list[str]:
    lines, line, is_empty = [], prefix, True
    for word in words:
        glue = "" if is_empty or line.endswith("  ") else " "
        if not is_empty and len(line) + len(glue) + len(word.rstrip()) > width:
            lines.append(line.rstrip())
            line, glue = indent, ""
        line, is_empty = line + glue + word, False
    return [*lines, line.rstrip()]
