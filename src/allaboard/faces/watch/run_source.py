"""Follows a run: its live feed while there is one, else its journal; it reconnects by itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from allaboard.cluster.transport.tls import TlsFiles
from allaboard.faces.watch.run_folders import WatchTarget, runs_in
from allaboard.facts import Snapshot
from allaboard.feed.connection import FeedConnection, connect_to_folder, connect_to_port
from allaboard.feed.journal_replay import JournalReplay, mark_abandoned
from allaboard.feed.messages import FeedError, Message, Refused, SnapshotMessage, Stacks

RETRY_S = 1.0
"""Seconds between two looks at a journal, and between two attempts to connect."""
FIRST_SNAPSHOT_TIMEOUT_S = 5.0
"""Seconds for the first snapshot of another agent of the job."""
MAX_SIBLINGS = 16
"""Runs beside a follower's that are asked whether they lead it."""


class SourceChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Where the messages come from has changed."""

    text: str
    """The source, for people."""
    is_live: bool
    """True if the messages that follow come from the agent itself."""


class RunSource:
    """One run that is followed. `messages` ends when the run has."""

    def __init__(
        self, target: WatchTarget, secret: bytes = b"", tls: TlsFiles | None = None
    ) -> None:
        self._target, self._secret, self._tls = target, secret, tls
        self._connection: FeedConnection | None = None
        self._replay: JournalReplay | None = None
        self._request_id = 0

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        """Yield messages until the run has ended. Raises FeedError if it cannot be watched at all."""
        has_begun = False
        while True:
            try:
                connection = await self._connect()
            except FeedError as error:
                if not error.is_absent or (self._target.folder is None and not has_begun):
                    raise
                connection = None
            if connection is not None:
                async for message in self._live_messages(connection):
                    has_begun = True
                    yield message
                if self._is_over:
                    return
            elif self._target.folder is not None:
                for message in self._journal_messages(self._target.folder):
                    has_begun = True
                    yield message
                if self._is_over:
                    return
            else:
                yield SourceChanged(text="connection lost; trying again", is_live=False)
            await asyncio.sleep(RETRY_S)

    def request_stacks(self) -> int:
        """Ask for fresh stacks; return the id of the answer, or 0 if nobody can be asked."""
        if self._connection is None:
            return 0
        self._request_id += 1
        self._connection.request_stacks(self._request_id)
        return self._request_id

    def recorded_stacks(self) -> Stacks | None:
        """Return the stacks of the journal's last picture; None if no journal is read."""
        return self._replay.last_stacks() if self._replay is not None else None

    def close(self) -> None:
        """Close the feed."""
        if self._connection is not None:
            self._connection.close()

    async def _connect(self) -> FeedConnection:
        folder, address = self._target
        if address is not None:
            return await connect_to_port(address, self._secret, self._tls)
        assert folder is not None
        return await connect_to_folder(folder)

    async def _live_messages(
        self, connection: FeedConnection
    ) -> AsyncIterator[Message | SourceChanged]:
        self._is_over = False
        self._connection = connection
        yield SourceChanged(text=connection.source, is_live=True)
        is_first = True
        try:
            async for message in connection.messages():
                if isinstance(message, Refused) and not message.id:
                    raise FeedError(f"{connection.source}: {message.reason}")
                if isinstance(message, SnapshotMessage):
                    run = message.snapshot.run
                    if is_first and not run.leads:
                        leader = await self._leading_feed(message.snapshot)
                        if leader is not None:
                            async for leader_message in self._live_messages(leader):
                                yield leader_message
                            return
                    is_first = False
                    self._is_over = bool(run.outcome)
                yield message
        finally:
            connection.close()
            if self._connection is connection:
                self._connection = None

    async def _leading_feed(self, snapshot: Snapshot) -> FeedConnection | None:
        """Return the feed of the agent that leads this follower's job, if its run folder is beside this one:
        on one host, or in a shared folder."""
        folder = self._target.folder
        if folder is None:
            return None
        members = {(r.host, r.pid) for r in snapshot.ranks}
        for sibling in runs_in(folder.parent)[:MAX_SIBLINGS]:
            if sibling == folder:
                continue
            try:
                connection = await connect_to_folder(sibling)
                first_feed = await asyncio.wait_for(
                    _first_snapshot(connection), FIRST_SNAPSHOT_TIMEOUT_S
                )
            except (FeedError, TimeoutError):
                continue
            connection.close()
            if first_feed is None or not first_feed.run.leads:
                continue
            if members and members <= {(r.host, r.pid) for r in first_feed.ranks}:
                return await connect_to_folder(sibling)
        return None

    def _journal_messages(self, folder: Path) -> list[Message | SourceChanged]:
        """Return what is new in the journal, with the newest picture last."""
        self._is_over = False
        is_first = self._replay is None
        replay = self._replay = self._replay or JournalReplay(folder)
        lines = replay.take_in(all_snapshots=False)
        # The last picture follows below, with the outcome.
        news: list[Message | SourceChanged] = [
            m for m in lines if not isinstance(m, SnapshotMessage)
        ]
        has_picture = replay.take_has_picture()
        if (
            not is_first
            and not news
            and not has_picture
            and not replay.has_report
            and not _is_gone(*replay.agent)
        ):
            return []
        snapshot = replay.final_snapshot()
        self._is_over = replay.has_report
        if not replay.has_report and _is_gone(*replay.agent):
            self._is_over = True
            snapshot = mark_abandoned(
                snapshot, "allaboard itself has ended without a report, so the outcome is not known"
            )
        head: list[Message | SourceChanged] = []
        if is_first:
            head = [SourceChanged(text=f"{folder}/journal.jsonl", is_live=False), replay.course()]
        return [*head, *news, SnapshotMessage(snapshot=snapshot)]

    _is_over = False


async def _first_snapshot(connection: FeedConnection) -> Snapshot | None:
    async for message in connection.messages():
        if isinstance(message, SnapshotMessage):
            return message.snapshot
    return None


def _is_gone(host: str, pid: int) -> bool:
    """Return True if the agent ran on this host and its process has ended."""
    if host != os.uname().nodename or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def fetch_snapshot(source: RunSource) -> Snapshot:
    """Return the newest snapshot of a run, and close the source. Raises FeedError if there is none."""
    try:
        async for message in source.messages():
            if isinstance(message, SnapshotMessage):
                return message.snapshot
    finally:
        source.close()
    raise FeedError("the feed was closed before its first snapshot; try again")
