"""The loops of the user's own code that a stack is in, by the text of its files."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from allaboard.facts import Frame
from allaboard.facts.stack import EnclosingLoop
from allaboard.formats.python_parser import parse_without_warnings
from allaboard.sampling.source_lines import is_readable_source

MAX_FILE_NBYTES = 500_000
"""Files that are larger are not read: a program of that size was written by another one."""
MAX_LOOPS = 8
"""Loops of one stack that are kept."""
_EXPRESSIONS = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Functions that are no more than an expression, and have no loop of their own."""


class _Span(NamedTuple):
    """First and last line of a function, or of the whole file."""

    begin: int
    end: int


class _Loop(NamedTuple):
    """One loop of a file."""

    begin: int
    """Its first line."""
    end: int
    """The last line of its body."""
    function: _Span
    """The function that it is in."""
    text: str
    """Its first line's text."""


def enclosing_loops(frames: tuple[Frame, ...]) -> tuple[EnclosingLoop, ...]:
    """Return the loops that these frames are in, the innermost first; () if no file can be read."""
    own = (f for f in frames if f.is_user and f.function not in _EXPRESSIONS)
    return tuple(islice((loop for frame in own for loop in _loops_around(frame)), MAX_LOOPS))


def _loops_around(frame: Frame) -> Iterator[EnclosingLoop]:
    try:
        file_stat = Path(frame.file).stat()
        if file_stat.st_size > MAX_FILE_NBYTES or not is_readable_source(frame.file):
            return
        functions, loops = _loops_of_file(frame.file, file_stat.st_mtime_ns)
    except (OSError, ValueError):
        return
    # A function that is defined in a loop may be called after it: only its own loops are around it.
    own = max((f for f in functions if f.begin <= frame.line <= f.end), default=None)
    around = (n for n in loops if n.begin <= frame.line <= n.end and n.function == own)
    for loop in sorted(around, reverse=True):
        yield EnclosingLoop(Frame(frame.file, loop.begin, frame.function, loop.text), loop.end)


@lru_cache(maxsize=64)
def _loops_of_file(path: str, changed_at: int) -> tuple[tuple[_Span, ...], tuple[_Loop, ...]]:
    """Return all functions of a file, itself among them, and all loops. Raises OSError and ValueError if it
    cannot be read, or is no Python."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        module = parse_without_warnings(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(path) from error
    lines = text.split("\n")
    functions = [_Span(0, 1 << 30)]
    loops: list[_Loop] = []
    pending: list[tuple[ast.AST, _Span]] = [(module, functions[0])]
    while pending:
        node, function = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = _Span(node.lineno, node.end_lineno or node.lineno)
            functions.append(function)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            end = node.body[-1].end_lineno or node.body[-1].lineno
            head = lines[node.lineno - 1].strip()[:200]
            loops.append(_Loop(node.lineno, end, function, head))
        elif isinstance(node, ast.expr):
            continue  # no statement is in an expression
        pending += [(child, function) for child in ast.iter_child_nodes(node)]
    return tuple(functions), tuple(loops)
