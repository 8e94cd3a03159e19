"""Asks which thread of a process keeps the interpreter to itself.

/proc alone tells whether any thread looks as if it waited for the GIL; only then py-spy is started, which
reads the process's memory without pausing it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from allaboard.evidence.grips import Glance, grip, wanting
from allaboard.evidence.parse import SpiedThread
from allaboard.facts import Grip
from allaboard.hosts.tasks import tasks

Spy = Callable[[int], Awaitable[tuple[SpiedThread, ...]]]


class Grips:
    """What was seen of each process at its last look; ``spy`` gives its Python threads, () where it
    cannot."""

    def __init__(self, spy: Spy) -> None:
        self._spy = spy
        self._before: dict[int, Glance] = {}

    async def look(self, pid: int, now: float) -> Grip | None:
        """A look at the time ``now`` (s), compared with the last one of this process."""
        glance = Glance(now, tasks(pid))
        before = self._before.get(pid)
        found = None
        if before is not None and wanting(before, glance):
            glance = msgspec.structs.replace(glance, spied=await self._spy(pid))
            found = grip(before, glance, pid)
        self._before[pid] = glance
        return found
