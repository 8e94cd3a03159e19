"""Positions of the texts of a Python script, and its literals as JSON with the position of each part."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

from allaboard.facts import Origin, Part
from allaboard.formats.source_map import align_text

_STRING = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>\"\"\"|'''|\"|')")
MAX_PIECES = 200_000
"""Pieces of one literal."""


class ScriptPositions:
    """The lines of one script."""

    def __init__(self, source: str, file: str) -> None:
        self.lines = source.split("\n")
        self.file = file

    def column(self, node: ast.expr | ast.stmt) -> int:
        """Return the column in characters, from 1; the syntax tree counts bytes, from 0."""
        return column_of(self.lines, node.lineno, node.col_offset)

    def origin(self, node: ast.expr, *, variable: str = "", flag: str = "") -> Origin:
        """Return the position of an expression; for a string, that of its text and of its parts."""
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
        first_line = (
            self.lines[node.lineno - 1][column - 1 :] if node.lineno <= len(self.lines) else ""
        )
        opening = _STRING.match(first_line)
        if opening is None or node.end_lineno is None or node.end_col_offset is None:
            return (Part(1, 1, node.lineno, column, literal=False),)
        source_text = "\n".join([first_line, *self.lines[node.lineno : node.end_lineno]])
        last_line = self.lines[node.end_lineno - 1]
        trailing = len(last_line) - (
            column_of(self.lines, node.end_lineno, node.end_col_offset) - 1
        )
        quote = opening["quote"]
        source_text = source_text[opening.end() : len(source_text) - trailing - len(quote)]
        style = "raw" if "r" in opening["prefix"].lower() else "python"
        return align_text(text, source_text, node.lineno, column + opening.end(), style)

    def to_json(
        self, node: ast.expr, constants: Mapping[str, ast.expr]
    ) -> tuple[str, tuple[Part, ...]]:
        """Return the literal as JSON, and the position of each part; names stand for their values in
        ``constants``.

        Raises:
            ValueError, TypeError, RecursionError: it is no literal, or JSON has no such value.
        """
        texts: list[str] = []
        parts: list[Part] = []
        position = 1
        for text, expression in _pieces(node, constants):
            texts.append(text)
            parts.append(
                Part(1, position, expression.lineno, self.column(expression), literal=False)
            )
            position += len(text)
            if len(texts) > MAX_PIECES:
                raise ValueError("too long a literal")
        return "".join(texts), tuple(parts)


def _pieces(node: ast.expr, constants: Mapping[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Yield JSON in pieces, each with the expression that it stands for."""
    if isinstance(node, ast.Name) and node.id in constants:
        name, node = node.id, constants[node.id]
        constants = {n: e for n, e in constants.items() if n != name}
    if isinstance(node, ast.Dict):
        yield "{", node
        for number, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            key_value = ast.literal_eval(key) if key is not None else None
            if key is None or not isinstance(key_value, (str, int, float)):
                raise TypeError("no key of JSON")
            yield ", " if number else "", node
            yield (
                json.dumps(key_value if isinstance(key_value, str) else json.dumps(key_value)),
                key,
            )
            yield ": ", key
            yield from _pieces(value, constants)
        yield "}", node
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield "[", node
        for number, element in enumerate(node.elts):
            yield ", " if number else "", node
            yield from _pieces(element, constants)
        yield "]", node
    else:
        yield json.dumps(ast.literal_eval(node)), node


def column_of(lines: list[str], line: int, offset: int) -> int:
    """Return the column in characters, from 1, of an offset in bytes."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    if text.isascii():
        return offset + 1
    return len(text.encode(errors="surrogatepass")[:offset].decode(errors="replace")) + 1
