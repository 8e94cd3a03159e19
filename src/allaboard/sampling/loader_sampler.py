"""Samples the processes that load the data of a rank that waits for it: where they are in the user's code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from allaboard.analysis.stacks.loader_stack import own_frame_of_loader
from allaboard.facts import Frame
from allaboard.hosts import proc, rank_processes

MAX_SAMPLED_LOADERS = 8
"""Processes of one rank that are sampled: each takes a py-spy."""
RESAMPLE_S = 3.0
"""Seconds until a rank's processes are sampled again: they stand still while the rank waits."""
Spy = Callable[[int], Awaitable[tuple[tuple[Frame, ...], str]]]
"""Returns a process's frames, innermost first, and why there are none."""


class LoaderSampler:
    """Remembers when the loaders of each rank were sampled last. ``spy`` takes the stack of one process."""

    def __init__(self, spy: Spy) -> None:
        self._spy = spy
        self._sampled_at: dict[int, float] = {}

    async def sample_loaders(self, pid: int) -> tuple[tuple[int, Frame], ...]:
        """Return where the Python processes that a rank has started are in the user's own code.

        Processes that wait for work, or that run (they are not stuck), are left out. Empty if they were
        sampled a moment ago.
        """
        now = monotonic()
        if now - self._sampled_at.get(pid, -RESAMPLE_S) < RESAMPLE_S:
            return ()
        self._sampled_at[pid] = now
        children = [
            child
            for child, stat in proc.descendants_of(pid).items()
            if stat.ppid == pid
            and stat.state in "SD"
            and rank_processes.is_python(child, proc.command_line(child))
        ][:MAX_SAMPLED_LOADERS]
        stacks = await asyncio.gather(*(self._spy(child) for child in children))
        places = (
            (child, own_frame_of_loader(frames))
            for child, (frames, _) in zip(children, stacks, strict=True)
        )
        return tuple((child, frame) for child, frame in places if frame is not None)
