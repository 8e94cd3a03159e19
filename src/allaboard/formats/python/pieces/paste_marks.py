"""Marks that are no Python, but come along when code is copied: prompts, fences, a difference's plus and
minus."""

from __future__ import annotations

import re

_FENCE = re.compile(r"(?:```|~~~)[\w+-]*[ \t]*$")
_FENCE_BEFORE_CODE = re.compile(r"(?:```|~~~)(?=\S+ )")
_PROSE = re.compile(r"\s{0,8}[A-Za-z][\w'-]{0,30}(?:[,;.]? [\w'-]{1,30}){3,60}[ .,:;!?]{0,4}\Z")
_FENCE_LINE = re.compile(r"\s{0,8}(?:```|~~~)[\w+-]*[ \t]*$")
_PROMPT = re.compile(r"(?:>>>|\.\.\.) |(?:In \[\d+\]: )|>>>$")
_BACKTICK = re.compile(r"^\s*`|`\s*$")
_STRAIGHT_QUOTES = str.maketrans("‘’“”", "''\"\"")
_DIFF_HEAD = re.compile(r"(?:diff |index |@@|\+\+\+ |--- )")
_DIFFERENCE = re.compile(r"[-+@ ]|diff |index ")
_ADDED, _REMOVED = re.compile(r"\+(?!\+\+ )"), re.compile(r"-(?!-- )")


def without_diff(lines: list[str]) -> list[str]:
    """Return the newer text of a difference as `diff -u` shows it, or the older one if it has no newer; other
    texts are returned as they are."""
    code = [line for line in lines if line.strip()]
    if not code or not all(_DIFFERENCE.match(line) for line in code):
        return lines
    has_new = any(_ADDED.match(line) for line in code)
    dropped = _REMOVED if has_new else _ADDED
    return [
        "" if _DIFF_HEAD.match(line) or dropped.match(line) else " " * (line != "") + line[1:]
        for line in lines
    ]


def without_marks(line: str) -> str:
    """Return a line without fences, prompts, back-ticks and curly quotes."""
    line = _FENCE.sub("", _PROMPT.sub("", line, count=1) if _PROMPT.match(line) else line)
    line = _FENCE_BEFORE_CODE.sub("", line.translate(_STRAIGHT_QUOTES), count=1)
    line = _BACKTICK.sub("", line) if line.count("`") == 1 else line
    return line.replace("\u00a0", " ").expandtabs(8) if line[:1].isspace() else line


def without_prose(lines: list[str], begins_with_code: bool) -> list[str]:
    """Return the code between the fences of a text, or before the first fence, with blank lines for the
    rest."""
    is_code, kept_lines = begins_with_code, []
    for line in lines:
        is_fence = _FENCE_LINE.match(line) is not None
        is_code ^= is_fence
        kept_lines.append(line if is_code and not is_fence else "")
    return kept_lines


def has_fences(lines: list[str]) -> bool:
    """Return True if fences part a text."""
    return any(map(_FENCE_LINE.match, lines))


def is_prose(line: str) -> bool:
    """Return True if a line is a sentence: four words or more, and nothing that only code has."""
    return _PROSE.match(line) is not None
