"""Where the texts of a Python script stand, and its literals as JSON with the place of each part."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

from allaboard.facts import Origin, Part
from allaboard.formats.source_map import align_text

_STRING = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>\"\"\"|'''|\"|')")
_MOST = 200_000
"""Pieces of one literal."""


class ScriptPositions:
    """The lines of one script."""

    def __init__(self, source: str, file: str) -> None:
        self.lines = source.split("\n")
        self.file = file

    def column(self, node: ast.expr | ast.stmt) -> int:
        """The column in characters, from 1; the syntax tree counts bytes, from 0."""
        return column_of(self.lines, node.lineno, node.col_offset)

    def origin(self, node: ast.expr, *, variable: str = "", flag: str = "") -> Origin:
        """Where an expression stands; that of a string, where its text begins and how it goes on."""
        line, column = node.lineno, self.column(node)
        parts: tuple[Part, ...] = ()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = self._string(node, node.value)
            line, column = parts[0].at_line, parts[0].at_column
        return Origin(
            variable=variable, flag=flag, file=self.file, line=line, column=column, parts=parts
        )

    def _string(self, node: ast.Constant, text: str) -> tuple[Part, ...]:
        column = self.column(node)
        first = self.lines[node.lineno - 1][column - 1 :] if node.lineno <= len(self.lines) else ""
        begins = _STRING.match(first)
        if begins is None or node.end_lineno is None or node.end_col_offset is None:
            return (Part(1, 1, node.lineno, column, literal=False),)
        written = "\n".join([first, *self.lines[node.lineno : node.end_lineno]])
        last = self.lines[node.end_lineno - 1]
        behind = len(last) - (column_of(self.lines, node.end_lineno, node.end_col_offset) - 1)
        quote = begins["quote"]
        written = written[begins.end() : len(written) - behind - len(quote)]
        style = "raw" if "r" in begins["prefix"].lower() else "python"
        return align_text(text, written, node.lineno, column + begins.end(), style)

    def to_json(
        self, node: ast.expr, known: Mapping[str, ast.expr]
    ) -> tuple[str, tuple[Part, ...]]:
        """The literal as JSON, and where each part of it stands; names stand for what ``known`` says.

        Raises:
            ValueError, TypeError, RecursionError: it is no literal, or JSON has no such thing.
        """
        texts: list[str] = []
        parts: list[Part] = []
        at = 1
        for text, where in _pieces(node, known):
            texts.append(text)
            parts.append(Part(1, at, where.lineno, self.column(where), literal=False))
            at += len(text)
            if len(texts) > _MOST:
                raise ValueError("too long a literal")
        return "".join(texts), tuple(parts)


def _pieces(node: ast.expr, known: Mapping[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """JSON in pieces, each with the expression that it stands for."""
    if isinstance(node, ast.Name) and node.id in known:
        name, node = node.id, known[node.id]
        known = {n: e for n, e in known.items() if n != name}
    if isinstance(node, ast.Dict):
        yield "{", node
        for number, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            said = ast.literal_eval(key) if key is not None else None
            if key is None or not isinstance(said, (str, int, float)):
                raise TypeError("no key of JSON")
            yield ", " if number else "", node
            yield json.dumps(said if isinstance(said, str) else json.dumps(said)), key
            yield ": ", key
            yield from _pieces(value, known)
        yield "}", node
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield "[", node
        for number, element in enumerate(node.elts):
            yield ", " if number else "", node
            yield from _pieces(element, known)
        yield "]", node
    else:
        yield json.dumps(ast.literal_eval(node)), node


def column_of(lines: list[str], line: int, offset: int) -> int:
    """The column in characters, from 1, of an offset in bytes."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    if text.isascii():
        return offset + 1
    return len(text.encode(errors="surrogatepass")[:offset].decode(errors="replace")) + 1
