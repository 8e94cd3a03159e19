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


async def survey_file(url: str) -> dict[str, str]:
    """`file_facts` of this place: a disk that does not answer holds up a thread, not us. Raises TimeoutError
    after ``SURVEY`` s."""
    async with asyncio.timeout(SURVEY_TIMEOUT_S):
        return await asyncio.get_running_loop().run_in_executor(None, file_facts, url)


class FileRendezvousCheck:
    """Looks at the file once for each member that stands at the door of an init, when it has come there: what
    its script did before, such as removing the file, is done then. Who is looked for is not shown to the job
    before. At a first init only a file from before the job is told of, later one that all have left.

    ``began`` is when the job did (s, CLOCK_MONOTONIC); ``wake`` is called when there is news.
    """

    def __init__(self, job_started_at: float, wake: Callable[[], None]) -> None:
        self._job_started_at = job_started_at
        self._wake = wake
        self._facts: dict[HeldMember, dict[str, str] | None] = {}
        """None while the disk is asked."""
        self._reported: set[HeldMember] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def hold_unchecked(self, events: Iterable[Event]) -> list[Event]:
        """The events without those of members whose file is being looked at; with what was found."""
        visible_events: list[Event] = []
        for event in events:
            member = _held_member(event)
            if member is not None:
                if member not in self._facts:
                    self._facts[member] = None
                    self._start_survey(member)
                facts = self._facts[member]
                if facts is None:
                    continue
                visible_events.append(event)
                if facts and member not in self._reported:
                    self._reported.add(member)
                    visible_events.append(MemberFactsReported(pid=member.pid, facts=facts))
            else:
                visible_events.append(event)
        return visible_events

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start_survey(self, member: HeldMember) -> None:
        task = asyncio.ensure_future(self._survey(member))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _survey(self, member: HeldMember) -> None:
        """A disk that does not answer holds up a thread, and the members for no longer than ``SURVEY``."""
        facts: dict[str, str] = {}
        with contextlib.suppress(TimeoutError):
            facts = await survey_file(member.url)
        if member.round > 1:
            # A peer that has not let go of its group yet may still be counted by right.
            all_left = facts.get("rendezvous joined") == "0"
            self._facts[member] = facts if all_left else NOT_JOINED
        else:
            age = float(facts.get("rendezvous age", "0").partition(" ")[0])
            is_from_before = age > time.monotonic() - self._job_started_at + CLOCK_SLACK_S
            self._facts[member] = facts if is_from_before else {}
        self._wake()


def _held_member(event: Event) -> HeldMember | None:
    """Who is held at the door of a file:// init; None for anybody else."""
    if not isinstance(event, ProcessSampled) or event.box is None or event.box.declared is None:
        return None
    declared, box = event.box.declared, event.box
    is_held = box.phase == Phase.ARRIVED and declared.hold and declared.place.startswith("file://")
    return HeldMember(event.pid, box.round, declared.place) if is_held else None
