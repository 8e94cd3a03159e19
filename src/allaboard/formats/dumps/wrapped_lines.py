"""Logs that were copied from a terminal which broke long lines at its width. Pure.

Every longer line was then cut into pieces of that width, in the middle of words.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

MIN_WIDTH = 60
"""Columns of a narrow terminal."""
MIN_BROKEN_LINES = 4
"""Lines of the full width whose next line goes on in the middle of a word."""
MIN_FULL_LINES = 3
"""Lines of the full width, all of which go on in the next one, of a short text."""
_PADDING = "  "
"""At the end of a line that a terminal filled up to its width."""
MAX_LINES = 20_000
"""Lines of a text that somebody copied from a terminal."""
MAX_PIECES = 40
"""Pieces of one line that are joined."""


class JoinedLines(NamedTuple):
    """A text whose broken lines were joined."""

    text: str
    """The text."""
    numbers: tuple[int, ...]
    """Number that each line had before, from 1; of the first piece of those that were joined."""


def join_wrapped_lines(text: str) -> JoinedLines | None:
    """Return the text with the lines joined that a terminal broke; None if it broke none."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        return None
    width = _terminal_width(lines)
    if not width:
        return None
    joined: list[str] = []
    numbers: list[int] = []
    pieces = 0
    for number, (previous, line) in enumerate(pairwise(["", *lines]), 1):
        is_full = len(previous) == width and not previous.endswith(_PADDING)
        is_piece = is_full and bool(line) and pieces < MAX_PIECES
        pieces = pieces + 1 if is_piece else 0
        if is_piece and joined:
            joined[-1] += line
        else:
            joined.append(line)
            numbers.append(number)
    return JoinedLines("\n".join(joined), tuple(numbers))


def _terminal_width(lines: list[str]) -> int:
    """Return the width at which the lines were broken; 0 if they were not."""
    lengths = Counter(map(len, lines))
    width = max(lengths)
    # The rest of a broken line is as short as it happens to be; a table or a box fills its lines with frames.
    broken = [
        (line, following)
        for line, following in pairwise(lines)
        if len(line) == width and following[:1].isalnum() and line[-1:].isalnum()
    ]
    if width < MIN_WIDTH or not broken:
        return 0
    padded = sum(1 for line in lines if len(line) == width and line.endswith(_PADDING))
    if len(broken) >= MIN_BROKEN_LINES and 2 * len(broken) >= lengths[width] - padded:
        return width
    # Some terminals fill shorter lines with spaces: then all lines have their width.
    if padded >= MIN_FULL_LINES:
        return width
    # Three lines of exactly the full width, none of which ends a sentence, are no accident either.
    # A line may also be broken at a space, if others of four are broken within a word.
    is_certain = lengths[width] > MIN_FULL_LINES and len(broken) > 1
    go_on = all(
        following[: 1 + is_certain].strip() and not line[-1:].isspace()
        for line, following in pairwise(lines)
        if len(line) == width
    )
    return width if lengths[width] >= MIN_FULL_LINES and go_on else 0
