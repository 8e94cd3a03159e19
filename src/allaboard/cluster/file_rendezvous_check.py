"""Examines what an earlier run or init left in a file:// rendezvous, before any gate opens."""

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
"""Seconds that a disk gets to answer; network file systems may hang for ever."""
CLOCK_SLACK_S = 0.2
"""Seconds by which a file must be older than the job: time stamps of file systems are coarse."""


NOT_JOINED = {"rendezvous joined": "-1"}
"""Facts that replace those of an earlier init."""


class HeldMember(NamedTuple):
    """A process that is held at the gate of an init with a file:// rendezvous."""

    pid: int
    round: int
    """Number of the init in this process, from 1."""
    url: str
    """The file:// URL of the rendezvous."""


async def survey_file(url: str) -> dict[str, str]:
    """Return the facts about the file of this URL.

    Runs in a thread, so that a disk that does not answer holds up that thread only. Raises TimeoutError after
    `SURVEY_TIMEOUT_S`.
    """
    # The timeout abandons the thread, it cannot end it: a thread in an NFS call is not interruptible.
    async with asyncio.timeout(SURVEY_TIMEOUT_S):
        return await asyncio.get_running_loop().run_in_executor(None, file_facts, url)


class FileRendezvousCheck:
    """Examines the file once for each member that reaches the gate of an init.

    Only then has its script done what it does before init, such as removing the file. The member's events are
    held back from the job state meanwhile. At a first init only a file from before the job is reported, at
    later ones only a file that all members have left.

    ``job_started_at`` is in seconds (CLOCK_MONOTONIC); ``wake`` is called when a result has arrived.
    """

    def __init__(self, job_started_at: float, wake: Callable[[], None]) -> None:
        self._job_started_at = job_started_at
        self._wake = wake
        self._facts: dict[HeldMember, dict[str, str] | None] = {}
        """Facts by member; None while the disk is being asked."""
        self._reported: set[HeldMember] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def hold_unchecked(self, events: Iterable[Event]) -> list[Event]:
        """Return the events without those of members whose file is being examined, and with new results."""
        visible_events: list[Event] = []
        for event in events:
            member = _held_member(event)
            if member is not None:
                if member not in self._facts:
                    # Marked before the task runs: the next tick must not start a second one.
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
        """Cancel what is still being examined."""
        for task in self._tasks:
            task.cancel()

    def _start_survey(self, member: HeldMember) -> None:
        task = asyncio.ensure_future(self._survey(member))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _survey(self, member: HeldMember) -> None:
        """Examine the file; a disk that does not answer holds up the member for no longer than
        `SURVEY_TIMEOUT_S`."""
        facts: dict[str, str] = {}
        with contextlib.suppress(TimeoutError):
            facts = await survey_file(member.url)
        if member.round > 1:
            # A count above 0 may be right: a peer may not have destroyed its process group yet.
            all_left = facts.get("rendezvous joined") == "0"
            self._facts[member] = facts if all_left else NOT_JOINED
        else:
            age = float(facts.get("rendezvous age", "0").partition(" ")[0])
            is_from_before = age > time.monotonic() - self._job_started_at + CLOCK_SLACK_S
            self._facts[member] = facts if is_from_before else {}
        self._wake()


def _held_member(event: Event) -> HeldMember | None:
    """Return the member of this event if it is held at the gate of a file:// init, else None."""
    if not isinstance(event, ProcessSampled) or event.box is None or event.box.declared is None:
        return None
    declared, box = event.box.declared, event.box
    is_held = box.phase == Phase.ARRIVED and declared.hold and declared.place.startswith("file://")
    return HeldMember(event.pid, box.round, declared.place) if is_held else None
