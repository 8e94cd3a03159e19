"""Positions in a file of the parts of a text that was written with quotes, escapes or indentation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """A stretch of a text, up to the next one: where it begins in the text, and where in its file."""

    line: int
    """Line in the text where it begins, from 1."""
    column: int
    """Column in the text where it begins, from 1."""
    at_line: int
    """Line in the file where it begins."""
    at_column: int
    """Column in the file where it begins."""
    literal: bool = True
    """True if it stands in the file letter by letter, lines included; False if all of it is at that one
    place."""

    def position_in_file(self, line: int, column: int) -> tuple[int, int]:
        """Return the line and column of the file where this place of the text stands."""
        if not self.literal or line < self.line:
            return self.at_line, self.at_column
        if line == self.line:
            return self.at_line, self.at_column + column - self.column
        return self.at_line + line - self.line, column


def position_of(parts: Sequence[Part], line: int, column: int) -> tuple[int, int]:
    """Return the line and column of the file where a place of a text stands that has these parts.

    The parts stand in the text's order; there is at least one.
    """
    index = bisect_right(parts, (line, column), key=lambda part: part[:2])
    return parts[max(index - 1, 0)].position_in_file(line, column)


def compose_parts(outer: Sequence[Part], inner: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts of a text whose ``inner`` parts are places in another text, which itself stands in a
    file by its ``outer`` parts."""
    parts: list[Part] = []
    for number, part in enumerate(inner):
        start = (part.at_line, part.at_column)
        outer_index = max(bisect_right(outer, start, key=lambda p: p[:2]) - 1, 0)
        line, column = outer[outer_index].position_in_file(*start)
        literal = part.literal and outer[outer_index].literal
        parts.append(Part(part.line, part.column, line, column, literal))
        if not part.literal:
            continue
        end = inner[number + 1][:2] if number + 1 < len(inner) else None
        for beyond in outer[outer_index + 1 :]:
            if beyond.line == part.at_line:
                start_of_beyond = part.line, part.column + beyond.column - part.at_column
            else:
                start_of_beyond = part.line + beyond.line - part.at_line, beyond.column
            if end is not None and start_of_beyond >= end:
                break
            parts.append(Part(*start_of_beyond, beyond.at_line, beyond.at_column, beyond.literal))
    return tuple(parts)
