"""Sentences of whoever asks about a log, above what they paste: they are no part of the log. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)[\w+-]*\s*$")
_SENTENCE = re.compile(r"[A-Z][a-z]*[ ,](?:[^\s:]{1,40} ){3,}[^\n]*[a-z)`]:?$")
MAX_LINE_CHARS = 400
"""Characters of a longer line, which is no such sentence."""


def introduces_paste(lines: Sequence[str], number: int) -> bool:
    """Return True if the line is a sentence right above the beginning of a fenced block (Markdown)."""
    line = lines[number].rstrip()
    if len(line) > MAX_LINE_CHARS or _SENTENCE.match(line) is None:
        return False
    below = next((n for n in range(number + 1, len(lines)) if lines[n].strip()), len(lines))
    is_fence = below < len(lines) and _FENCE.match(lines[below]) is not None
    return is_fence and sum(1 for x in lines[:below] if _FENCE.match(x)) % 2 == 0
