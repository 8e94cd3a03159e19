"""Private keys in a text, taken out. A line that only mentions how one begins takes nothing with it."""

from __future__ import annotations

import re

MAX_KEY_LENGTH = 20_000
"""Characters of a key in PEM; one of 16,384 bits has 13,000."""
_BEGIN = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_SAME_LINE = re.compile(
    r"(?:\\+[nr]|[A-Za-z0-9+/=_-]|[ \t]+(?=[A-Za-z0-9+/=]{40}))*(?:[ \t\r]*(?=\n|\Z))?"
)
"""What may follow in the same line: a key whose line ends are written as \\n, or are blanks."""
_LINE = re.compile(
    r"[ \t]*(?:[A-Za-z0-9+/=_-]+|(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*"
    r"|\S{1,40}[ \t]+[A-Za-z0-9+/=]{16,}|[^\n]*[ \t][A-Za-z0-9+/=]{40,})?[ \t\r]*(?:\n|\Z)"
)
"""A line of a key, or of its head, which a launcher or a logger may have put something before."""


def remove_private_keys(text: str, instead: str) -> str:
    """The text with ``instead`` in place of every key: up to its end where that is near, else as far as what
    follows can be one."""
    kept, at = [], 0
    while begin := _BEGIN.search(text, at):
        kept += [text[at : begin.start()], instead]
        at = _after(text, begin.end())
    return "".join([*kept, text[at:]])


def _after(text: str, at: int) -> int:
    end = _END.search(text, at, at + MAX_KEY_LENGTH)
    another = _BEGIN.search(text, at, end.start() if end is not None else at)
    if end is not None and another is None:
        return end.end()
    same = _SAME_LINE.match(text, at)
    at = same.end() if same is not None else at
    if text[at : at + 1] != "\n":
        return at
    stop = at
    start = at + 1
    while start < len(text) and (line := _LINE.match(text, start)):
        start = line.end()
        stop = start - 1 if text[start - 1] == "\n" else start
    return stop
