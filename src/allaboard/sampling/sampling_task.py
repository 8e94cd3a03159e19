"""The sampling of stacks that is running: one at a time, and ended before the loop is.

Sampling may wait for a process of its own (py-spy). Its event loop, which reaps that process, may
close only when the process has ended: cancelled a second time, as the end of a loop does it, the
task would leave the process behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

CANCEL_GRACE_S = 2.0
"""How long a cancelled sampling gets to end its process."""


class SamplingTask:
    """A sampling that runs, or none: never two at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, look: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.ensure_future(look)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def wait_ended(self) -> None:
        """Return when a cancelled sampling has ended, or after the grace. What it raised does not
        matter any more."""
        if self._task is not None:
            # asyncio.wait does not cancel the task at the timeout, as wait_for would.
            await asyncio.wait([self._task], timeout=CANCEL_GRACE_S)
