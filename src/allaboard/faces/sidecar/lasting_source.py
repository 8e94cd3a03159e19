"""Follows a run to its end, however often its feed cannot be read meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.watch.run_folders import WatchTarget
from allaboard.faces.watch.run_source import RunSource, SourceChanged
from allaboard.feed.messages import FeedError, Message

RETRY_S = 5.0
"""Seconds before the feed is opened again."""
TRIES_BEFORE_NOTE = 4
"""Failures in a row before people are told: an agent that gets no CPU for a moment does not answer."""
PROBLEM = "feed"


class FollowedRun(Protocol):
    """A run that a face follows."""

    def messages(self) -> AsyncIterator[Message | SourceChanged]:
        """Yield messages until the run has ended."""

    def close(self) -> None:
        """Close the feed."""


class LastingSource:
    """One run, followed until it has ended. ``subject`` is what the face reports, for people."""

    def __init__(
        self,
        open_source: Callable[[], FollowedRun],
        subject: str,
        notes: ProblemNotes,
        retry_s: float = RETRY_S,
    ) -> None:
        self._open_source, self._subject, self._notes = open_source, subject, notes
        self._retry_s = retry_s
        self._source: FollowedRun | None = None

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        """Yield messages until the run has ended; those of before may come again after a pause."""
        failures = 0
        while True:
            self._source = self._open_source()
            try:
                async for message in self._source.messages():
                    failures = 0
                    self._notes.resolve(PROBLEM, f"{self._subject} are reported again")
                    yield message
                return
            except FeedError as error:
                failures += 1
                if failures >= TRIES_BEFORE_NOTE:
                    self._notes.report(
                        PROBLEM,
                        f"{self._subject} are not reported: the feed cannot be read ({error}); trying again",
                    )
            finally:
                self._source.close()
            await asyncio.sleep(self._retry_s)

    def close(self) -> None:
        """Close the feed."""
        if self._source is not None:
            self._source.close()


def follow_folder(run_dir: Path, subject: str, notes: ProblemNotes) -> LastingSource:
    """Return the run of this folder."""
    return LastingSource(lambda: RunSource(WatchTarget(run_dir)), subject, notes)
