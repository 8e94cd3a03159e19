"""What an earlier run or init left at a file:// rendezvous, looked at before anybody is let through."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from allaboard.facts import Phase
from allaboard.hosts.rendezvous_file import file_facts
from allaboard.protocol.events import Event, MemberFactsReported, ProcessSampled

SURVEY_TIMEOUT_S = 2.0
"""Seconds that a disk gets to answer."""
CLOCK_SLACK_S = 0.2
"""Seconds by which a file must be older than the job: clocks of disks are coarse."""


NOT_JOINED = {"rendezvous joined": "-1"}
"""In place of what was found at an earlier init."""


class HeldMember(NamedTuple):
    """One process at the door of its n-th init, and the file:// URL where it means to meet."""

    pid: int
    round: int
    url: str


async def survey_file(place: str) -> dict[str, str]:
    """`file_facts` of this place: a disk that does not answer holds up a thread, not us. Raises TimeoutError
    after ``SURVEY`` s."""
    async with asyncio.timeout(SURVEY_TIMEOUT_S):
        return await asyncio.get_running_loop().run_in_executor(None, file_facts, place)


class FileRendezvousCheck:
    """Looks at the file once for each member that stands at the door of an init, when it has come there: what
    its script did before, such as removing the file, is done then. Who is looked for is not shown to the job
    before. At a first init only a file from before the job is told of, later one that all have left.

    ``began`` is when the job did (s, CLOCK_MONOTONIC); ``wake`` is called when there is news.
    """

    def __init__(self, began: float, wake: Callable[[], None]) -> None:
        self._began = began
        self._wake = wake
        self._known: dict[HeldMember, dict[str, str] | None] = {}
        """None while the disk is asked."""
        self._told: set[HeldMember] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def hold_unchecked(self, events: Iterable[Event]) -> list[Event]:
        """The events without those of members whose file is being looked at; with what was found."""
        shown: list[Event] = []
        for event in events:
            standing = _standing(event)
            if standing is not None:
                if standing not in self._known:
                    self._known[standing] = None
                    self._do(standing)
                found = self._known[standing]
                if found is None:
                    continue
                shown.append(event)
                if found and standing not in self._told:
                    self._told.add(standing)
                    shown.append(MemberFactsReported(pid=standing.pid, facts=found))
            else:
                shown.append(event)
        return shown

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _do(self, standing: HeldMember) -> None:
        task = asyncio.ensure_future(self._survey(standing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _survey(self, standing: HeldMember) -> None:
        """A disk that does not answer holds up a thread, and the members for no longer than ``SURVEY``."""
        found: dict[str, str] = {}
        with contextlib.suppress(TimeoutError):
            found = await survey_file(standing.url)
        if standing.round > 1:
            # A peer that has not let go of its group yet may still be counted by right.
            left = found.get("rendezvous joined") == "0"
            self._known[standing] = found if left else NOT_JOINED
        else:
            age = float(found.get("rendezvous age", "0").partition(" ")[0])
            older = age > time.monotonic() - self._began + CLOCK_SLACK_S
            self._known[standing] = found if older else {}
        self._wake()


def _standing(event: Event) -> HeldMember | None:
    """Who is held at the door of a file:// init; None for anybody else."""
    if not isinstance(event, ProcessSampled) or event.box is None or event.box.declared is None:
        return None
    told, box = event.box.declared, event.box
    held = box.phase == Phase.ARRIVED and told.hold and told.place.startswith("file://")
    return HeldMember(event.pid, box.round, told.place) if held else None
