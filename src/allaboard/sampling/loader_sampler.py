"""Samples processes that a waiting rank has started: those that load its data, and those of a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import takewhile
from time import monotonic
from typing import NamedTuple

from allaboard.analysis.stacks.loader_stack import (
    frame_of_program,
    is_in_native_call,
    own_frame_of_loader,
)
from allaboard.facts import Frame
from allaboard.hosts import proc, rank_processes
from allaboard.hosts.awaited.lone_futex import waits_alone

MAX_SAMPLED_LOADERS = 8
"""Processes of one rank that are sampled: each takes a py-spy."""
POOL_RESAMPLE_S = 1.2
"""The same for the processes of a pool: two samples must agree."""
RESAMPLE_S = 3.0
"""Seconds until a rank's processes are sampled again: they stand still while the rank waits."""
Spy = Callable[[int], Awaitable[tuple[tuple[Frame, ...], str]]]
"""Returns a process's frames, innermost first, and why there are none."""


class ChildPlaces(NamedTuple):
    """Where the children of a rank are in the user's own code."""

    places: tuple[tuple[int, Frame], ...] = ()
    """Their pids, and the innermost frame of the user's own code."""
    lone_waiters: tuple[int, ...] = ()
    """Those that have one thread, which waits in native code for another one."""


class LoaderSampler:
    """Remembers when the loaders of each rank were sampled last. ``spy`` takes the stack of one process."""

    def __init__(self, spy: Spy) -> None:
        self._spy = spy
        self._sampled_at: dict[int, float] = {}

    async def sample_loaders(self, pid: int, with_programs: bool = False) -> ChildPlaces:
        """Return where the Python processes that a rank has started are in the user's own code.

        Processes that wait for work, or that run (they are not stuck), are left out. Empty if they were
        sampled a moment ago. ``with_programs``: also children that are programs of their own, or that the
        rank has forked by itself.
        """
        frame_of = frame_of_program if with_programs else own_frame_of_loader
        stacks = await self._stacks_of_children(pid, RESAMPLE_S) or []
        placed = [(child, frames, frame_of(frames)) for child, frames in stacks]
        return ChildPlaces(
            tuple((child, own_frame) for child, _, own_frame in placed if own_frame is not None),
            tuple(
                child
                for child, frames, own_frame in placed
                if own_frame is not None and is_in_native_call(frames) and waits_alone(child)
            ),
        )

    async def count_idle_pool(self, pid: int) -> int:
        """Return how many processes the pool of a rank has, if every one waits for a task; 0 if one is at
        work, or there is none; -1 if they were sampled a moment ago."""
        below = proc.descendants_of(pid)
        children = [stat for stat in below.values() if stat.ppid == pid and stat.state != "Z"]
        if len(children) > MAX_SAMPLED_LOADERS or any(stat.state == "R" for stat in children):
            return 0
        stacks = await self._stacks_of_children(pid, POOL_RESAMPLE_S)
        if stacks is None:
            return -1
        if not all(frames for _, frames in stacks):
            return 0
        in_pool = [frames for _, frames in stacks if any(map(_is_pool_loop, frames))]
        return len(in_pool) if all(map(_waits_for_task, in_pool)) else 0

    async def _stacks_of_children(
        self, pid: int, resample_s: float
    ) -> list[tuple[int, tuple[Frame, ...]]] | None:
        """Return the stacks of the rank's idle Python children; None if they were sampled a moment ago."""
        now = monotonic()
        if now - self._sampled_at.get(pid, -resample_s) < resample_s:
            return None
        self._sampled_at[pid] = now
        children = [
            child
            for child, stat in proc.descendants_of(pid).items()
            if stat.ppid == pid
            and stat.state in "SD"
            and rank_processes.is_python(child, proc.command_line(child))
        ][:MAX_SAMPLED_LOADERS]
        stacks = await asyncio.gather(*(self._spy(child) for child in children))
        return [(child, frames) for child, (frames, _) in zip(children, stacks, strict=True)]


def _is_pool_loop(frame: Frame) -> bool:
    return frame.function == "worker" and frame.file.endswith("multiprocessing/pool.py")


def _waits_for_task(frames: tuple[Frame, ...]) -> bool:
    """Return True if a process of a pool is between two tasks: it reads its queue, or waits to read it."""
    inner_frames = takewhile(lambda frame: not _is_pool_loop(frame), frames)
    outermost = list(inner_frames)[-1:]
    return any(
        f.function == "get" and f.file.endswith("multiprocessing/queues.py") for f in outermost
    )
