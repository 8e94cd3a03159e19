"""The loops of the user's own code that a stack is in, by the text of its files."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from allaboard.facts import Frame
from allaboard.facts.stack import EnclosingLoop

MAX_FILE_NBYTES = 500_000
"""Files that are larger are not read: a program of that size was written by another one."""
MAX_LOOPS = 8
"""Loops of one stack that are kept."""
_Loop = tuple[int, int, tuple[int, int]]
"""First line of a loop, last line of its body, and first and last line of the function that it is in."""


def enclosing_loops(frames: tuple[Frame, ...]) -> tuple[EnclosingLoop, ...]:
    """Return the loops that these frames are in, the innermost first; () if no file can be read."""
    return tuple(loop for frame in frames if frame.is_user for loop in _loops_around(frame))[
        :MAX_LOOPS
    ]


def _loops_around(frame: Frame) -> Iterator[EnclosingLoop]:
    try:
        changed_at = Path(frame.file).stat().st_mtime_ns
        loops = _loops_of_file(frame.file, changed_at)
    except (OSError, ValueError):
        return
    around = [loop for loop in loops if loop[0] <= frame.line <= loop[1]]
    # Of nested functions only the innermost one is the frame's own.
    function = max((loop[2] for loop in around), default=None)
    for first_line, last_line, owner in sorted(around, reverse=True):
        if owner == function:
            text = linecache.getline(frame.file, first_line).strip()[:200]
            yield EnclosingLoop(Frame(frame.file, first_line, frame.function, text), last_line)


@lru_cache(maxsize=64)
def _loops_of_file(path: str, changed_at: int) -> tuple[_Loop, ...]:
    """Return all loops of a file. Raises OSError and ValueError if it cannot be read, or is no Python."""
    data = Path(path).read_bytes()
    if len(data) > MAX_FILE_NBYTES:
        return ()
    try:
        module = ast.parse(data)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(path) from error
    loops: list[_Loop] = []
    pending: list[tuple[ast.AST, tuple[int, int]]] = [(module, (0, 1 << 30))]
    while pending:
        node, owner = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            owner = node.lineno, node.end_lineno or node.lineno
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            statement = node.body[-1]
            loops.append((node.lineno, statement.end_lineno or statement.lineno, owner))
        pending += [(child, owner) for child in ast.iter_child_nodes(node)]
    return tuple(loops)
