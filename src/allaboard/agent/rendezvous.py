"""What an earlier run left at a file:// rendezvous, looked at before anybody of this job is let through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from allaboard.coordinator.events import Answered, Event, Seen
from allaboard.facts import Phase
from allaboard.hosts.rendezvous_file import file_facts

SURVEY = 2.0
"""Seconds that a disk gets to answer."""
CLOSE = 0.2
"""Seconds by which a file must be older than the job: clocks of disks are coarse."""


async def surveyed(place: str) -> dict[str, str]:
    """`file_facts` of this place: a disk that does not answer holds up a thread, not us. Raises TimeoutError
    after ``SURVEY`` s."""
    async with asyncio.timeout(SURVEY):
        return await asyncio.get_running_loop().run_in_executor(None, file_facts, place)


class Rendezvous:
    """Looks at the file once for each member that stands at the door of its first init, when it has come
    there: what its script did before, such as removing the file, is done then. Who is looked for is not shown
    to the job before.

    ``began`` is when the job did (s, CLOCK_MONOTONIC); ``wake`` is called when there is news.
    """

    def __init__(self, began: float, wake: Callable[[], None]) -> None:
        self._began = began
        self._wake = wake
        self._known: dict[int, dict[str, str] | None] = {}
        """None while the disk is asked."""
        self._told: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, events: Iterable[Event]) -> list[Event]:
        """The events without those of members whose file is being looked at; with what was found."""
        shown: list[Event] = []
        for event in events:
            place = _place(event)
            if place and isinstance(event, Seen):
                if event.pid not in self._known:
                    self._known[event.pid] = None
                    self._do(event.pid, place)
                found = self._known[event.pid]
                if found is None:
                    continue
                shown.append(event)
                if found and event.pid not in self._told:
                    self._told.add(event.pid)
                    shown.append(Answered(pid=event.pid, facts=found))
            else:
                shown.append(event)
        return shown

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _do(self, pid: int, place: str) -> None:
        task = asyncio.ensure_future(self._survey(pid, place))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _survey(self, pid: int, place: str) -> None:
        """A disk that does not answer holds up a thread, and the members for no longer than ``SURVEY``."""
        found: dict[str, str] = {}
        try:
            found = await surveyed(place)
        except TimeoutError:
            pass
        age = float(found.get("rendezvous age", "0").partition(" ")[0])
        older = age > time.monotonic() - self._began + CLOSE
        self._known[pid] = found if older else {}
        self._wake()


def _place(event: Event) -> str:
    """The file:// URL at whose door this member is held for the first time; "" for anybody else."""
    if not isinstance(event, Seen) or event.box is None or event.box.declared is None:
        return ""
    told, box = event.box.declared, event.box
    first = box.phase == Phase.ARRIVED and box.round == 1 and told.hold
    return told.place if first and told.place.startswith("file://") else ""
