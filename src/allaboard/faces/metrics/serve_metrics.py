"""Reports the metrics of one run until it ends: at a port, in a file, or both."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from allaboard.faces.metrics.exposition import RunCollector, make_registry
from allaboard.faces.metrics.metric_table import JobPicture
from allaboard.faces.metrics.metrics_server import (
    MAX_LINGER_S,
    MetricsServer,
    linger_s,
    listen_failure,
)
from allaboard.faces.metrics.metrics_settings import MetricsSettings
from allaboard.faces.metrics.run_totals import RunTotals
from allaboard.faces.metrics.text_file import MetricsFile
from allaboard.faces.sidecar.bounded_call import call_in_thread
from allaboard.faces.sidecar.lasting_source import FollowedRun
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.feed.messages import Course, FeedError, Message, SnapshotMessage

LISTEN_AGAIN_S = 5.0
"""Seconds between two attempts to listen at a port that is taken."""
LISTEN_TIMEOUT_S = 20.0
"""Seconds that the name of the address to listen at may take to resolve."""
WRITE_TIMEOUT_S = 20.0
"""Seconds after which a disk counts as hanging."""
LINGER_POLL_S = 0.2


class MetricsFace:
    """The metrics of one run."""

    def __init__(
        self,
        source: FollowedRun,
        settings: MetricsSettings,
        notes: ProblemNotes,
        max_linger_s: float = MAX_LINGER_S,
    ) -> None:
        self._source, self._settings, self._notes = source, settings, notes
        self._max_linger_s = max_linger_s
        self._totals = RunTotals()
        self._collector = RunCollector()
        self._registry = make_registry(self._collector)
        self._server: MetricsServer | None = None
        self._file = MetricsFile(Path(settings.file), self._registry) if settings.file else None

    async def run(self) -> None:
        """Report until the run has ended, and for a scraper its outcome once more."""
        listening = asyncio.create_task(self._listen())
        try:
            async for message in self._source.messages():
                self._take_in(message)
                await self._write_file()
            await self._write_file(is_last=True)
            await self._linger()
        except FeedError as error:
            self._notes.write(f"metrics are no longer reported: {error}")
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            self._source.close()
            if self._server is not None:
                await call_in_thread(self._server.close, WRITE_TIMEOUT_S)

    def _take_in(self, message: Message | SourceChanged) -> None:
        if isinstance(message, Course):
            self._totals.add_course(message.points)
        elif isinstance(message, SnapshotMessage):
            self._totals.add(message.snapshot)
            self._collector.set_picture(JobPicture(message.snapshot, self._totals))

    async def _listen(self) -> None:
        host, port = self._settings.host, self._settings.port
        while port >= 0:
            try:
                self._server = await call_in_thread(
                    lambda: MetricsServer(host, port, self._registry), LISTEN_TIMEOUT_S
                )
            except TimeoutError:
                self._notes.report("port", f"metrics are not reported: {host} does not resolve")
                await asyncio.sleep(LISTEN_AGAIN_S)
                continue
            except OSError as error:
                why = listen_failure(host, port, error)
                self._notes.report("port", f"metrics are not reported at {host}:{port}: {why}")
                await asyncio.sleep(LISTEN_AGAIN_S)
                continue
            self._notes.write(f"metrics for Prometheus: {self._server.url}")
            return

    async def _write_file(self, is_last: bool = False) -> None:
        file = self._file
        if file is None or not self._collector.has_picture:
            return
        now = asyncio.get_running_loop().time()
        if not is_last and not file.is_due(now):
            return
        path = self._settings.file
        try:
            await call_in_thread(file.write, WRITE_TIMEOUT_S)
        except TimeoutError:
            self._file = None  # each further write would hang as well
            self._notes.write(f"metrics are no longer written to {path}: the disk does not answer")
            return
        if file.write_error:
            self._notes.report("file", f"metrics are not written to {path}: {file.write_error}")
        else:
            self._notes.resolve("file", f"metrics are written to {path} again")

    async def _linger(self) -> None:
        """Let a scraper read the outcome."""
        server = self._server
        if server is None:
            return
        loop = asyncio.get_running_loop()
        ended_at = loop.time()
        deadline = ended_at + linger_s(server.scraped_at, ended_at, self._max_linger_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not server.scraped_at or server.scraped_at[-1] <= ended_at:
                    await asyncio.sleep(LINGER_POLL_S)
