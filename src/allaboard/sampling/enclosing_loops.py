"""The loops of the user's own code that a stack is in, by the text of its files."""

from __future__ import annotations

from pathlib import Path

from allaboard.facts import Frame
from allaboard.facts.stack import EnclosingLoop
from allaboard.sampling.source_blocks import SourceBlocks, SourceLoop, Span, read_source_blocks
from allaboard.sampling.source_lines import is_readable_source

MAX_FILE_NBYTES = 500_000
"""Files that are larger are not read: a program of that size was written by another one."""
MAX_LOOPS = 8
"""Loops of one stack that are kept."""
_EXPRESSIONS = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Functions that are no more than an expression, and have no loop of their own."""


def enclosing_loops(frames: tuple[Frame, ...]) -> tuple[EnclosingLoop, ...]:
    """Return the loops that these frames are in, the innermost first; () if no file can be read."""
    loops: list[EnclosingLoop] = []
    ends_of_callers: tuple[Frame, ...] = ()
    for frame in reversed(frames):
        if not frame.is_user or frame.function in _EXPRESSIONS:
            continue
        file, around = _loops_around(frame)
        loops_of_frame = (
            EnclosingLoop(
                Frame(frame.file, loop.begin, frame.function, loop.text),
                loop.end,
                _branch_end(file, frame, loop.function, loop.begin) + ends_of_callers,
            )
            for loop in around
        )
        loops[:0] = loops_of_frame
        if (function := _function_at(file, frame.line)) is not None:
            ends_of_callers = (_branch_end(file, frame, function, frame.line) + ends_of_callers)[
                :MAX_LOOPS
            ]
    return tuple(loops[:MAX_LOOPS])


def _function_at(file: SourceBlocks, line: int) -> Span | None:
    """Return the innermost function around a line."""
    return max((f for f in file.functions if f.begin <= line <= f.end), default=None)


def _branch_end(file: SourceBlocks, frame: Frame, function: Span, line: int) -> tuple[Frame, ...]:
    """Return the last line of the innermost branch of the frame's function that a line is in; () if it is in
    none."""
    around = (b for b in file.branches if b.begin <= line <= b.end and b.begin > function.begin)
    branch = max(around, default=None)
    return (Frame(frame.file, branch.end, frame.function),) if branch is not None else ()


def _loops_around(frame: Frame) -> tuple[SourceBlocks, list[SourceLoop]]:
    """Return what the frame's file has, and the loops of its function that it is in, the innermost first."""
    try:
        file_stat = Path(frame.file).stat()
        if file_stat.st_size > MAX_FILE_NBYTES or not is_readable_source(frame.file):
            return _NO_FILE, []
        file = read_source_blocks(frame.file, file_stat.st_mtime_ns)
    except (OSError, ValueError):
        return _NO_FILE, []
    # A function that is defined in a loop may be called after it: only its own loops are around it.
    function = _function_at(file, frame.line)
    around = (n for n in file.loops if n.begin <= frame.line <= n.end and n.function == function)
    return file, sorted(around, reverse=True)


_NO_FILE = SourceBlocks((), (), ())
