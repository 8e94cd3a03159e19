"""The look at stacks that is under way: one at a time, and over before the loop is.

A look may be inside of a process of its own (py-spy). Its loop, which reaps that process, may close only when
that has ended: cancelled a second time, as a loop's end does, it would leave it behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

CANCEL_GRACE_S = 2.0
"""Seconds that a cancelled look gets to end its process."""


class SamplingTask:
    """Nothing is under way at first."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, look: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.ensure_future(look)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def over(self) -> None:
        """Comes back when what was cancelled has ended; what it raised is nobody's matter any more."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CANCEL_GRACE_S)
