"""Where a text stands that a format wrote with quotes, escapes, folds or indentation."""

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
"""How what stands in the file is made of escapes, folds of lines, and text as it is."""
_MOST = 100_000
"""Parts of one text that are told apart."""


def align_text(text: str, written: str, line: int, column: int, style: str) -> tuple[Part, ...]:
    """The parts of ``text``, which stands in the file as ``written``, from this place on.

    ``style`` is ``plain`` (of YAML; a block without its head too), ``'`` or ``"`` (of YAML), ``python`` or
    ``raw``; ``written`` has no quotes around it. Where the two do not belong together, all of the text
    is at its beginning.
    """
    nowhere = (Part(1, 1, line, column, literal=False),)
    found: list[Part] = []
    at, own = 0, (1, 1)
    for piece in _PIECES[style].finditer(written):
        kind, said = piece.lastgroup, piece.group()
        if kind == "text":
            before_fold = written[piece.end() : piece.end() + 1] in ("\n", "")
            kept = said.rstrip() if before_fold and style not in ("python", "raw") else said
            begin = at
            while at < len(text) and not text.startswith(kept, at) and text[at].isspace():
                at += 1
            if not text.startswith(kept, at) or len(found) >= _MOST:
                return nowhere
            own = position_after(text[begin:at], *own)
            found.append(Part(*own, line, column))
            own = position_after(kept, *own)
            at += len(kept)
        elif kind == "escape" and "\n" not in said:
            found.append(Part(*own, line, column, literal=False))
            own = position_after(text[at : at + 1], *own)
            at += 1
        line, column = position_after(said, line, column)
    return tuple(found) or nowhere


def position_after(text: str, line: int, column: int) -> tuple[int, int]:
    """Line and column behind a text that begins there."""
    breaks = text.count("\n")
    return (line + breaks, len(text) - text.rfind("\n")) if breaks else (line, column + len(text))
