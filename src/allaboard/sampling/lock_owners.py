"""The locks that threads want and hold, by the text of their code.

Python's locks do not say who holds them. But a thread inside a ``with lock:`` block holds it, and
the source says which blocks a frame is inside of. A lock is known only by its expression in the
code ("self.lock").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Frame, Holds, Stack
from allaboard.formats.python_parser import parse_without_warnings
from allaboard.sampling.source_lines import source_lines

MAX_THREADS = 8
"""Threads that are told of."""
MAX_FILE_LINES = 20_000
"""Lines of a file that is not read."""
_PYTHON_IN_TENSORFLOW = "tensorflow/python/ops/script_ops.py"
_POOL = "concurrent/futures/thread.py"
_ACQUIRE = re.compile(r"([\w.\[\]'\"]+)\.acquire\s*\(")
_WITH = re.compile(r"^with\s+(.*):")


def lock_holds(stacks: list[tuple[Frame, ...]]) -> tuple[Holds, ...]:
    """Return what these threads, the main one first, want and hold; () if the main one wants no
    lock."""
    holds = [_holds_of_thread(frames) for frames in stacks]
    if not holds or holds[0] is None or not holds[0].wants:
        return ()
    return tuple(t for t in holds if t is not None and (t.wants or t.holds))[:MAX_THREADS]


def other_user_frames(stacks: list[tuple[Frame, ...]]) -> tuple[Frame, ...]:
    """Return where the program's other threads are in its own code, while the main one (the first
    of these) waits for something that one of them does: its end, an item, a result. () if the
    main one waits for a lock with a name."""
    if not stacks or lock_holds(stacks):
        return ()
    user_frames = (next((f for f in frames if f.is_user), None) for frames in stacks[1:])
    return tuple(dict.fromkeys(f for f in user_frames if f is not None))[:MAX_THREADS]


def is_feeding_generator(frames: tuple[Frame, ...]) -> bool:
    """Return True if a thread of the framework runs the user's own Python here: a generator that
    feeds a ``tf.data`` pipeline, or a function inside of one."""
    calls = next((i for i, f in enumerate(frames) if f.file.endswith(_PYTHON_IN_TENSORFLOW)), 0)
    return any(f.is_user for f in frames[:calls])


def awaits_external_answer(frames: tuple[Frame, ...]) -> bool:
    """Return True if this is a thread of the program, or of a pool that it gives work to, that
    waits for an answer from another process. Threads that a library keeps for itself (a
    logger's) wait like that all the time, and do not count."""
    is_programs_own = any(f.is_user or f.file.endswith(_POOL) for f in frames)
    return is_programs_own and classify_stack(Stack(frames=frames, taken_at=0.0)) is Spot.ANSWER


def _holds_of_thread(frames: tuple[Frame, ...]) -> Holds | None:
    user_frame = next((f for f in frames if f.is_user), None)
    if user_frame is None:
        return None
    wants = ""
    if classify_stack(Stack(frames=frames, taken_at=0.0)) is Spot.LOCK:
        match = _ACQUIRE.search(user_frame.text) or _WITH.search(user_frame.text)
        wants = match[1].strip() if match else ""
    holds = tuple(h for f in frames if f.is_user for h in _enclosing(f.file, f.line))
    held_at, interrupts = _held_further_out(frames, user_frame, wants)
    return Holds(frame=user_frame, wants=wants, holds=holds, held_at=held_at, interrupts=interrupts)


def _held_further_out(
    frames: tuple[Frame, ...], wanting: Frame, wants: str
) -> tuple[Frame | None, Frame | None]:
    """Return the caller that holds the lock which its thread wants, and what Python has called there by
    itself, each None if there is none.

    ``self.lock`` of another file is the lock of another object.
    """
    if not wants:
        return None, None
    called = wanting
    for frame in frames[frames.index(wanting) + 1 :]:
        if not frame.is_user:
            continue
        is_same_lock = frame.file == wanting.file or not wants.startswith("self.")
        if is_same_lock and wants in _enclosing(frame.file, frame.line):
            return frame, None if re.search(_name_in_call(called.function), frame.text) else called
        called = frame
    return None, None


def _name_in_call(function: str) -> str:
    return rf"\b{re.escape(function.rpartition('.')[2])}\b"


@lru_cache(maxsize=64)
def _enclosing(file: str, line: int) -> tuple[str, ...]:
    """Return the expressions of the ``with`` blocks whose bodies hold this line, innermost first."""
    lines = source_lines(file)
    if not lines or len(lines) > MAX_FILE_LINES:
        return ()
    try:
        tree = parse_without_warnings("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(reversed(list(_with_blocks_around(tree, line))))


def _with_blocks_around(tree: ast.AST, line: int) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        end = getattr(node, "end_lineno", None)
        # Some nodes have no position of their own (`ast.arguments`): their children have.
        if end is None:
            yield from _with_blocks_around(node, line)
        elif node.lineno <= line <= end:  # type: ignore[attr-defined]  # it has an end
            if isinstance(node, ast.With) and node.body[0].lineno <= line:
                yield from (ast.unparse(item.context_expr) for item in node.items)
            yield from _with_blocks_around(node, line)
