"""Follows one run, and writes its scalars and findings to trackers until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from allaboard.faces.experiments.finding_note import note_finding
from allaboard.faces.experiments.scalar_table import read_scalars
from allaboard.faces.experiments.tracker import Tracker
from allaboard.faces.experiments.tracker_queue import CALL_TIMEOUT_S, TrackerQueue
from allaboard.faces.experiments.tracker_settings import LAST_WORDS_S
from allaboard.faces.metrics.run_totals import RunTotals
from allaboard.faces.sidecar.finding_filter import FindingFilter
from allaboard.faces.sidecar.lasting_source import FollowedRun
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.facts import Snapshot
from allaboard.feed.messages import Course, FeedError, FindingMessage, Message, SnapshotMessage

POINT_INTERVAL_S = 5.0
"""Seconds of the run between two points."""


class RunTrackers:
    """The trackers of one run."""

    def __init__(
        self,
        source: FollowedRun,
        trackers: Sequence[Tracker],
        notes: ProblemNotes,
        interval_s: float = POINT_INTERVAL_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        end_timeout_s: float = LAST_WORDS_S - 1.0,
    ) -> None:
        self._end_timeout_s = end_timeout_s
        self._source, self._notes, self._interval_s = source, notes, interval_s
        now = asyncio.get_running_loop().time
        self._queues = [TrackerQueue(t, notes, now, call_timeout_s) for t in trackers]
        self._totals = RunTotals()
        self._filter = FindingFilter()
        self._snapshot: Snapshot | None = None
        self._next_point_s = 0.0
        self._has_ended = False
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Write until the run has ended, and its end."""
        writing = [asyncio.create_task(self._write_regularly(queue)) for queue in self._queues]
        try:
            async for message in self._source.messages():
                self._take_in(message)
        except FeedError as error:
            self._notes.write(f"scalars and findings are no longer written: {error}")
        finally:
            self._source.close()
            self._has_ended = True
            self._news.set()
            await self._finish(writing)

    async def _finish(self, writing: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the last words, as long as the end of `run` waits for this process."""
        if not writing:
            return
        _, unfinished = await asyncio.wait(writing, timeout=self._end_timeout_s)
        if unfinished:
            self._notes.write("the last scalars and findings were not written in time")
        unused = [queue.is_unused for queue in self._queues if queue.is_optional]
        if unused and all(unused):
            self._notes.write(
                "scalars and findings were not written (--tracker auto): no rank was seen to have a run of "
                "wandb, mlflow or trackio at its first step"
            )

    def _take_in(self, message: Message | SourceChanged) -> None:
        if isinstance(message, Course):
            self._totals.add_course(message.points)
        elif isinstance(message, FindingMessage) and self._filter.is_new(message.finding):
            step = self._snapshot.run.step_highest if self._snapshot is not None else 0
            note = note_finding(message.finding, step)
            for queue in self._queues:
                queue.add(note)
        elif isinstance(message, SnapshotMessage):
            self._add_point(message.snapshot)

    def _add_point(self, snapshot: Snapshot) -> None:
        """Let a point wait if one is due. The end of the run always is one."""
        self._totals.add(snapshot)
        self._snapshot = snapshot
        elapsed_s = snapshot.run.elapsed_s
        if elapsed_s < self._next_point_s and not snapshot.run.outcome:
            return
        self._next_point_s = elapsed_s + self._interval_s
        point = read_scalars(snapshot, self._totals)
        for queue in self._queues:
            queue.add(point)
        self._news.set()

    async def _write_regularly(self, queue: TrackerQueue) -> None:
        """Write what waits for one tracker, so that a slow one holds up no other."""
        while not self._has_ended:
            await self._news.wait()
            self._news.clear()
            if self._snapshot is not None and not self._has_ended:
                await queue.write(self._snapshot)
        if self._snapshot is not None:
            await queue.write(self._snapshot, is_last=True)
