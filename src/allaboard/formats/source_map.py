"""Positions of a text that a format wrote with quotes, escapes, folds or indentation."""

from __future__ import annotations

import re

from allaboard.facts import Part

_YAML = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[ \t]*\n[ \t]*|.)"
_PYTHON = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|[0-7]{1,3}|\n|.)"
_FOLD = r"(?P<fold>\n\s*)"
_PIECES = {
    "plain": re.compile(rf"{_FOLD}|(?P<text>[^\n]+)"),
    "'": re.compile(rf"(?P<escape>'')|{_FOLD}|(?P<text>[^'\n]+)"),
    '"': re.compile(rf"(?P<escape>{_YAML})|{_FOLD}|(?P<text>[^\\\n]+)"),
    "python": re.compile(rf"(?P<escape>{_PYTHON})|(?P<text>[^\\]+)"),
    "raw": re.compile(r"(?P<text>(?s:.+))"),
}
"""Splits source text into escapes, folds of lines, and literal text, by style."""
MAX_PARTS = 100_000
"""Parts of one text that are told apart."""


def align_text(text: str, written: str, line: int, column: int, style: str) -> tuple[Part, ...]:
    """Return the parts of ``text``, which the file has as ``written``, from this position on.

    ``style`` is ``plain`` (of YAML; a block without its head too), ``'`` or ``"`` (of YAML), ``python`` or
    ``raw``; ``written`` has no quotes around it. If the two do not fit, all of the text is placed at the
    beginning.
    """
    nowhere = (Part(1, 1, line, column, literal=False),)
    parts: list[Part] = []
    position, text_position = 0, (1, 1)
    for piece in _PIECES[style].finditer(written):
        kind, piece_text = piece.lastgroup, piece.group()
        if kind == "text":
            before_fold = written[piece.end() : piece.end() + 1] in ("\n", "")
            plain_text = (
                piece_text.rstrip()
                if before_fold and style not in ("python", "raw")
                else piece_text
            )
            begin = position
            while (
                position < len(text)
                and not text.startswith(plain_text, position)
                and text[position].isspace()
            ):
                position += 1
            if not text.startswith(plain_text, position) or len(parts) >= MAX_PARTS:
                return nowhere
            text_position = position_after(text[begin:position], *text_position)
            parts.append(Part(*text_position, line, column))
            text_position = position_after(plain_text, *text_position)
            position += len(plain_text)
        elif kind == "escape" and "\n" not in piece_text:
            parts.append(Part(*text_position, line, column, literal=False))
            text_position = position_after(text[position : position + 1], *text_position)
            position += 1
        line, column = position_after(piece_text, line, column)
    return tuple(parts) or nowhere


def position_after(text: str, line: int, column: int) -> tuple[int, int]:
    """Return the line and column after a text that begins at this position."""
    breaks = text.count("\n")
    return (line + breaks, len(text) - text.rfind("\n")) if breaks else (line, column + len(text))
