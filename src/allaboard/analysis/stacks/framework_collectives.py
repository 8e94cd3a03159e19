"""Which collective of a framework's own a stack is in; the user's line is only where it was called from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from allaboard.analysis.stacks.library_own_collectives import LIBRARY_COLLECTIVES
from allaboard.analysis.stacks.own_collective import OwnCollective
from allaboard.analysis.stacks.torch_own_collectives import TORCH_COLLECTIVES
from allaboard.facts import Frame
from allaboard.late_pattern import compile_late

MAX_CALLER_DISTANCE = 4
"""Frames between a function and the caller by which the table tells what it is."""
_COMPILED = tuple(
    (
        compile_late(f"(?:^|/)(?:{row.file})$"),
        compile_late(f"(?:{row.function})$"),
        compile_late(f"(?:^|/)(?:{row.caller})$") if row.caller else None,
        row,
    )
    for row in (*TORCH_COLLECTIVES, *LIBRARY_COLLECTIVES)
)


def find_own_collective(frames: Sequence[Frame]) -> OwnCollective | None:
    """Return the framework's own collective in which these frames (innermost first) are; None if there is
    none.

    The user's own frames end the search: what the user's code calls is the user's collective, also through a
    function that only passes it on.
    """
    passed_on: OwnCollective | None = None
    for depth, frame in enumerate(frames):
        if frame.is_user:
            direct = depth > 0 and own_collective_at(frames, depth - 1)
            return None if direct and direct.passes_on else passed_on
        if (collective := own_collective_at(frames, depth)) is None:
            continue
        if not collective.passes_on:
            return collective
        passed_on = collective
    return passed_on


def own_collective_at(frames: Sequence[Frame], depth: int) -> OwnCollective | None:
    """Return the framework's own collective that the function at this depth is; None for any other."""
    frame = frames[depth]
    callers = frames[depth + 1 : depth + 1 + MAX_CALLER_DISTANCE]
    for caller, row in _rows_of(frame.file, frame.function):
        if caller is None or any(caller.search(f.file) for f in callers):
            return row
    return None


@lru_cache(maxsize=4096)
def _rows_of(path: str, name: str) -> tuple[tuple[re.Pattern[str] | None, OwnCollective], ...]:
    """Return the rows that name this function. Cached, since all ranks of a job are in the same few."""
    return tuple((c, row) for f, n, c, row in _COMPILED if n.match(name) and f.search(path))
