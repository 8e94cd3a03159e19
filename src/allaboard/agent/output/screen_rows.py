"""A row of text cut to the width of a terminal. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_RESET = "\x1b[0m"


class CutRow(NamedTuple):
    """A row that fits."""

    text: bytes
    """What to write."""
    columns: int
    """Columns that it takes."""


def cut_row(row: bytes, width: int) -> CutRow:
    """Return the row, cut after ``width`` columns; colours take no column, and end with the row.

    Wide characters (East Asian, emoji) take two columns, combining ones none.
    """
    text = row.decode("utf-8", "replace")
    if "\x1b" not in text and text.isascii():
        return CutRow(row[:width], min(width, len(row)))
    # Imported here: the agent of a job without a terminal does without it.
    from rich.cells import cell_len, set_cell_size

    parts: list[str] = []
    columns_left = width
    for part in _COLOUR.split(text):
        if _COLOUR.fullmatch(part):
            parts.append(part)
            continue
        length = cell_len(part)
        parts.append(part if length <= columns_left else set_cell_size(part, columns_left))
        columns_left = max(0, columns_left - length)
    shown = "".join(parts) + (_RESET if "\x1b" in text else "")
    return CutRow(shown.encode("utf-8", "replace"), width - columns_left)
