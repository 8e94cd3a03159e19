"""Removal of private keys from a text. A line that only mentions how a key begins loses nothing."""

from __future__ import annotations

from allaboard.late_pattern import compile_late

MAX_KEY_LENGTH = 20_000
"""Characters of a key in PEM; one of 16,384 bits has 13,000."""
BEGIN = compile_late(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
"""Matches the first line of a private key."""
_END = compile_late(r"-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_SAME_LINE = compile_late(
    r"(?:\\+[nr]|[A-Za-z0-9+/=_-]|[ \t]+(?=[A-Za-z0-9+/=]{40}))*(?:[ \t\r]*(?=\n|\Z))?"
)
r"""Matches what may follow on the same line: a key whose line ends are written as \\n, or are blanks."""
_LINE = compile_late(
    r"[ \t]*(?:[A-Za-z0-9+/=_-]+|(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*"
    r"|\S{1,40}[ \t]+[A-Za-z0-9+/=]{16,}|[^\n]*[ \t][A-Za-z0-9+/=]{40,})?[ \t\r]*(?:\n|\Z)"
)
"""Matches a line of a key or of its head, also with the prefix of a launcher or a logger."""


def remove_private_keys(text: str, replacement: str) -> str:
    """Return the text with ``replacement`` in place of every key.

    A key goes up to its end if that is near, else as far as what follows can be one.
    """
    pieces, position = [], 0
    while begin := BEGIN.search(text, position):
        pieces += [text[position : begin.start()], replacement]
        position = _key_end(text, begin.end())
    return "".join([*pieces, text[position:]])


def _key_end(text: str, position: int) -> int:
    end = _END.search(text, position, position + MAX_KEY_LENGTH)
    next_begin = BEGIN.search(text, position, end.start() if end is not None else position)
    # Another beginning before the end means that this key was cut off: the end is the other's.
    if end is not None and next_begin is None:
        return end.end()
    same_line = _SAME_LINE.match(text, position)
    position = same_line.end() if same_line is not None else position
    if text[position : position + 1] != "\n":
        return position
    last_line_end = position
    next_line = position + 1
    while next_line < len(text) and (line := _LINE.match(text, next_line)):
        next_line = line.end()
        last_line_end = next_line - 1 if text[next_line - 1] == "\n" else next_line
    return last_line_end
