"""JSON as it is printed: a terminal that shows it is not driven by what others wrote into it."""

from __future__ import annotations

import re

import msgspec

_DRIVES_A_TERMINAL = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters that JSON leaves as they are, and those that change the direction of a text."""


def indented_json(value: object) -> str:
    """Return the value as indented JSON with a line end; what would drive a terminal is escaped, which means
    the same to every program that reads it."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _DRIVES_A_TERMINAL.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
