"""The functions, loops and branches of a Python file, by their lines."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from allaboard.formats.python_parser import parse_without_warnings

_LEAVES = (ast.Return, ast.Continue, ast.Break)
"""Statements behind which the rest of a block is not reached."""


class Span(NamedTuple):
    """First and last line of a function, of the whole file, or of a branch."""

    begin: int
    """First line, counted from 1; 0 for the whole file."""
    end: int
    """Last line."""


class SourceLoop(NamedTuple):
    """One loop of a file."""

    begin: int
    """Its first line."""
    end: int
    """The last line of its body."""
    function: Span
    """The function that it is in."""
    text: str
    """Its first line's text."""


class SourceBlocks(NamedTuple):
    """What one file has."""

    functions: tuple[Span, ...]
    """All functions, and the file itself."""
    branches: tuple[Span, ...]
    """What is reached under a condition alone."""
    loops: tuple[SourceLoop, ...]
    """All loops."""


@lru_cache(maxsize=64)
def read_source_blocks(path: str, changed_at: int) -> SourceBlocks:
    """Return what a file has, as it was at ``changed_at`` (its st_mtime_ns). Raises OSError and ValueError if
    it cannot be read, or is no Python."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        module = parse_without_warnings(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(path) from error
    lines = text.split("\n")
    functions = [Span(0, 1 << 30)]
    branches: list[Span] = []
    loops: list[SourceLoop] = []
    pending: list[tuple[ast.AST, Span]] = [(module, functions[0])]
    while pending:
        node, function = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = Span(node.lineno, node.end_lineno or node.lineno)
            functions.append(function)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            end = node.body[-1].end_lineno or node.body[-1].lineno
            head = lines[node.lineno - 1].strip()[:200]
            loops.append(SourceLoop(node.lineno, end, function, head))
        elif isinstance(node, ast.expr):
            continue  # no statement is in an expression
        branches += _branches_in(node)
        pending += [(child, function) for child in ast.iter_child_nodes(node)]
    return SourceBlocks(tuple(functions), tuple(branches), tuple(loops))


def _branches_in(node: ast.AST) -> Iterator[Span]:
    """Yield the branches directly below a node."""
    for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if not isinstance(block, list) or not block:
            continue
        end = block[-1].end_lineno or block[-1].lineno
        if isinstance(node, (ast.If, ast.match_case)):
            yield Span(block[0].lineno, end)
        for number, statement in enumerate(block[:-1]):
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVES):
                yield Span(block[number + 1].lineno, end)
