"""Threads of a ThreadPoolExecutor that all wait for results which only they could work out. Pure.

A task that submits others to its own pool and waits for them holds a thread meanwhile. Once all threads are
held so, the tasks that they wait for stay in the queue for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from allaboard.facts import Frame

_POOL_FILE = "concurrent/futures/thread.py"
_FUTURE_FILE = "concurrent/futures/_base.py"
_OTHER_SOURCES = ("concurrent/futures/process.py", "asyncio/base_events.py")
"""Files in which a thread stands that fulfils futures without being one of a pool of threads."""


def blocked_pool_threads(stacks: Sequence[tuple[Frame, ...]]) -> int:
    """Return how many threads the pools of a process have if the main thread, the first of these, waits for a
    future and all of them do, too; 0 if one of them, or somebody else, may still fulfil it."""
    if not stacks or not _waits_for_future(stacks[0]):
        return 0
    in_pool = [frames for frames in stacks[1:] if any(map(_is_pool_loop, frames))]
    outside = [frames for frames in stacks[1:] if not any(map(_is_pool_loop, frames))]
    if any(f.is_user or f.file.endswith(_OTHER_SOURCES) for frames in outside for f in frames):
        return 0
    return len(in_pool) if all(map(_waits_for_future, in_pool)) else 0


def _is_pool_loop(frame: Frame) -> bool:
    return frame.function == "_worker" and frame.file.endswith(_POOL_FILE)


def _waits_for_future(frames: tuple[Frame, ...]) -> bool:
    """Return True if the user's own code waits here for a future: an idle thread of a pool has none."""
    inner_frames = list(takewhile(lambda frame: not frame.is_user, frames))
    return len(inner_frames) < len(frames) and any(
        f.function in ("result", "exception", "wait", "as_completed")
        and f.file.endswith(_FUTURE_FILE)
        for f in inner_frames
    )
