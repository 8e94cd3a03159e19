"""Follows one run and tells people of its faults: messages, heartbeat, the user's command."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from pathlib import Path

from allaboard.faces.notify.finding_command import MAX_WAITING, CommandInput, FindingCommand
from allaboard.faces.notify.heartbeat import send_heartbeats
from allaboard.faces.notify.incidents import IncidentBook, Notice
from allaboard.faces.notify.notice_text import message_text
from allaboard.faces.notify.notify_settings import LAST_WORDS_S, NotifySettings
from allaboard.faces.notify.rate_limit import RateLimit
from allaboard.faces.notify.send_messages import (
    LAST_RETRY_DELAYS_S,
    RETRY_DELAYS_S,
    SEND_TIMEOUT_S,
    MessageSender,
)
from allaboard.faces.sidecar.finding_filter import FindingFilter
from allaboard.faces.sidecar.lasting_source import FollowedRun
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.facts import Finding, Snapshot
from allaboard.feed.messages import FeedError, FindingMessage, Message, SnapshotMessage

TICK_S = 1.0


class RunNotifier:
    """Tells people of one run."""

    def __init__(
        self,
        source: FollowedRun,
        settings: NotifySettings,
        notes: ProblemNotes,
        now: Callable[[], float],
    ) -> None:
        self._source, self._settings, self._notes, self._now = source, settings, notes, now
        self._book = IncidentBook()
        self._limit = RateLimit()
        self._senders = [
            MessageSender(number, url, notes, SEND_TIMEOUT_S)
            for number, url in enumerate(settings.urls, 1)
        ]
        self._command = (
            FindingCommand(settings.on_finding, Path(settings.run_dir), notes)
            if settings.on_finding
            else None
        )
        self._has_followed = not settings.only_if_taken_over
        self._leads = False
        self._snapshot: Snapshot | None = None
        self._filter = FindingFilter()
        self._new_findings: deque[Finding] = deque(maxlen=MAX_WAITING)
        self._sending: set[asyncio.Task[bool]] = set()

    async def run(self) -> None:
        """Tell people until the run has ended, and of its end."""
        tasks = [asyncio.create_task(self._check_senders()), asyncio.create_task(self._tick())]
        if self._settings.heartbeat_url and not self._settings.only_if_taken_over:
            heartbeats = send_heartbeats(self._settings.heartbeat_url, self._notes)
            tasks.append(asyncio.create_task(heartbeats))
        if self._command is not None:
            tasks.append(asyncio.create_task(self._command.run()))
        try:
            async for message in self._source.messages():
                self._take_in(message)
        except FeedError as error:
            self._notes.write(f"faults are no longer notified: {error}")
        finally:
            self._source.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S - 1.0):
                    await asyncio.gather(*self._sending, return_exceptions=True)
                    if self._command is not None:
                        await self._command.wait_until_idle()
            for task in (*tasks, *self._sending):
                task.cancel()
            await asyncio.gather(*tasks, *self._sending, return_exceptions=True)

    def _take_in(self, message: Message | SourceChanged) -> None:
        if isinstance(message, FindingMessage) and self._filter.is_new(message.finding):
            self._new_findings.append(message.finding)
        if isinstance(message, SnapshotMessage):
            self._snapshot = message.snapshot
            self._note_leader(message.snapshot)
            self._tell(message.snapshot)
        if self._snapshot is not None:  # only now it is known who speaks
            self._run_command(self._snapshot.run.job)

    def _run_command(self, job: str) -> None:
        while self._new_findings:
            finding = self._new_findings.popleft()
            if self._command is not None and self._speaks:
                run_dir = self._settings.run_dir
                self._command.add(CommandInput(job=job, run_dir=run_dir, finding=finding))

    @property
    def _speaks(self) -> bool:
        """True if this host speaks for the job."""
        return self._leads and self._has_followed

    def _note_leader(self, snapshot: Snapshot) -> None:
        # In a shared folder, the source of a follower shows the leader's own feed.
        is_own = snapshot.run.run_dir == self._settings.run_dir
        self._leads = snapshot.run.leads and is_own
        self._has_followed = self._has_followed or not self._leads

    def _tell(self, snapshot: Snapshot) -> None:
        notices = self._book.take_in(snapshot, self._now())
        if self._speaks:
            for notice in notices:
                self._send(notice)

    def _send(self, notice: Notice) -> None:
        is_last = bool(notice.snapshot.run.outcome)
        if not self._senders or not self._limit.allows(self._now(), is_last):
            return
        text = message_text(notice, self._limit.take_withheld())
        delays = LAST_RETRY_DELAYS_S if is_last else RETRY_DELAYS_S
        for sender in self._senders:
            task = asyncio.create_task(sender.send(text, delays))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _tick(self) -> None:
        """Let incidents settle while no snapshot comes, as of a job that is frozen with its agent."""
        while True:
            await asyncio.sleep(TICK_S)
            if self._snapshot is not None and not self._snapshot.run.outcome:
                self._tell(self._snapshot)

    async def _check_senders(self) -> None:
        for sender in list(self._senders):
            if not await sender.check():
                self._senders.remove(sender)
