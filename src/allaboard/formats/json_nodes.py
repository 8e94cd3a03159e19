"""JSON (RFC 8259) read into nodes with positions; errors say what is wrong, where, and what was probably
meant."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from json import decoder

from allaboard.facts import FormatError, Node

MAX_DEPTH = 100
"""Levels of nesting that are read; a TF_CONFIG needs three."""

_scan: Callable[[str, int, bool], tuple[str, int]] = decoder.__dict__["scanstring"]
"""The standard library's own string reader, in C where it is compiled."""

_WHITESPACE = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(r"-?[A-Za-z0-9_.+-]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_PYTHON_NUMBERS = {"NaN", "Infinity", "-Infinity"}


def read_json(text: str) -> Node:
    """Return the tree of a JSON text.

    ``NaN`` and ``Infinity`` are read as numbers, as Python's own reader does, so that a rule can say what is
    wrong with them.

    Raises:
        FormatError: the text is not JSON; with the first place that is wrong.
    """
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.open: list[str] = []
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]

    def document(self) -> Node:
        self._skip()
        if self.offset >= len(self.text):
            raise FormatError("empty where JSON was expected", 1, 1)
        node = self._value()
        self._skip()
        if self.offset < len(self.text):
            raise self._error("text after the end of the JSON value")
        return node

    def _position(self, position: int) -> tuple[int, int]:
        line = bisect_right(self.lines, position)
        return line, position - self.lines[line - 1] + 1

    def _skip(self) -> None:
        match = _WHITESPACE.match(self.text, self.offset)
        self.offset = match.end() if match else self.offset

    def _value(self) -> Node:
        line, column = self._position(self.offset)
        char = self.text[self.offset : self.offset + 1]
        if char in ("{", "["):
            if len(self.open) >= MAX_DEPTH:
                raise self._error(f"nested deeper than {MAX_DEPTH} levels")
            self.open.append("}" if char == "{" else "]")
            self.offset += 1
            node = self._map(line, column) if char == "{" else self._list(line, column)
            self.open.pop()
            return node
        if char == '"':
            return Node("string", line, column, self._string())
        word = _WORD.match(self.text, self.offset)
        name = word.group() if word else ""
        if name in ("true", "false", "null"):
            self.offset += len(name)
            return Node("null" if name == "null" else "bool", line, column, name)
        if name and (_NUMBER.match(name) or name in _PYTHON_NUMBERS):
            self.offset += len(name)
            return Node("number", line, column, name)
        if char == "'":
            raise self._error("a single quote; JSON strings stand in double quotes")
        if name in ("True", "False", "None"):
            raise self._error(f"{name} is Python; JSON writes {_JSON_WORDS[name]}")
        raise self._error("the text ends here" if not char else "no JSON value")

    def _string(self) -> str:
        start = self.offset
        try:
            # Not strict: a bare line break in a string, which JSON forbids, is taken.
            text, self.offset = _scan(self.text, start + 1, False)
        except ValueError:
            raise self._error("a string that does not end") from None
        return text

    def _map(self, line: int, column: int) -> Node:
        node = Node("map", line, column)
        self._skip()
        while not self._takes("}"):
            if self.text[self.offset : self.offset + 1] != '"':
                raise self._error(self._key_fault())
            position = self._position(self.offset)
            key = self._string()
            self._skip()
            if not self._takes(":"):
                raise self._error("no ':' after the key")
            self._skip()
            if key in node.items:
                node.twice.append((key, *position))
            node.keys[key] = position
            node.items[key] = self._value()
            self._between("}")
        return node

    def _list(self, line: int, column: int) -> Node:
        node = Node("list", line, column)
        self._skip()
        while not self._takes("]"):
            node.elements.append(self._value())
            self._between("]")
        return node

    def _between(self, end: str) -> None:
        """Read what follows an element: a comma and another element, or the end."""
        self._skip()
        if self._takes(","):
            comma = self.offset - 1
            self._skip()
            if self.text[self.offset : self.offset + 1] == end:
                self.offset = comma
                raise self._error(f"a comma before the closing {end}")
        elif self.text[self.offset : self.offset + 1] != end:
            raise self._error(f"neither ',' nor '{end}'")

    def _takes(self, char: str) -> bool:
        if self.text[self.offset : self.offset + 1] == char:
            self.offset += 1
            return True
        return False

    def _key_fault(self) -> str:
        char = self.text[self.offset : self.offset + 1]
        if char == "'":
            return "a single quote; JSON strings stand in double quotes"
        return "the text ends here" if not char else "no key in double quotes"

    def _error(self, message: str) -> FormatError:
        line, column = self._position(min(self.offset, len(self.text)))
        if self.offset >= len(self.text) and self.open:
            message = f"the text ends here, with {''.join(reversed(self.open))} still to come"
        excerpt = self.text[self.offset : self.offset + 24].split("\n")[0]
        closers = "".join(reversed(self.open))
        return FormatError(message, line, column, excerpt, _guess_json(self.text, closers))


_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}
MAX_GUESSED_LENGTH = 20_000
"""Characters up to which a repair of the text is tried."""


def _guess_json(text: str, closers: str) -> str:
    """Return the JSON that was probably meant, on one line; "" if no simple repair makes it JSON."""
    # The readers below recurse once a level.
    if len(text) > MAX_GUESSED_LENGTH or "[" * MAX_DEPTH in text or "{" * MAX_DEPTH in text:
        return ""
    stripped = text.strip().lstrip("\ufeff")
    if stripped[:1] == stripped[-1:] == "'":
        stripped = stripped[1:-1]
    without_commas = re.sub(r",(\s*[}\]])", r"\1", stripped)
    for candidate in (stripped, without_commas, stripped.replace('\\"', '"'), stripped + closers):
        try:
            return json.dumps(json.loads(candidate))
        except (ValueError, RecursionError):
            continue
    import ast

    from allaboard.formats.python_parser import parse_without_warnings

    try:
        body = parse_without_warnings(stripped).body
        value = ast.literal_eval(body[0].value) if isinstance(body[0], ast.Expr) else None
        return json.dumps(value) if isinstance(value, dict) else ""
    except (ValueError, SyntaxError, TypeError, IndexError, RecursionError, MemoryError):
        return ""
