"""Sends one run to an OpenTelemetry collector, over HTTP, until the run has ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Any

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from allaboard.faces.metrics.metric_table import JobPicture
from allaboard.faces.metrics.run_totals import RunTotals
from allaboard.faces.sidecar.bounded_call import call_in_thread
from allaboard.faces.sidecar.finding_filter import FindingFilter
from allaboard.faces.sidecar.lasting_source import FollowedRun
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.telemetry.otlp_records import (
    SpanWriter,
    finding_record,
    make_resource,
    metrics_data,
)
from allaboard.faces.telemetry.round_spans import RoundTracker
from allaboard.faces.telemetry.telemetry_settings import TelemetrySettings
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.facts import Finding
from allaboard.feed.messages import Course, FeedError, FindingMessage, Message, SnapshotMessage

EXPORT_INTERVAL_S = 10.0
"""Seconds between two exports."""
REQUEST_TIMEOUT_S = 5.0
"""Seconds for one request, with the SDK's own repetitions."""
EXPORT_TIMEOUT_S = 8.0
"""Seconds after which an export counts as hanging."""
MAX_WAITING = 1000
"""Findings, and spans, that wait for a collector that does not answer; the oldest ones are dropped."""
PROBLEM = "otlp"


class _Exporters:
    def __init__(self, url: str, timeout_s: float) -> None:
        base = url.rstrip("/")
        self.metrics = OTLPMetricExporter(f"{base}/v1/metrics", timeout=timeout_s)
        self.logs = OTLPLogExporter(f"{base}/v1/logs", timeout=timeout_s)
        self.spans = OTLPSpanExporter(f"{base}/v1/traces", timeout=timeout_s)


class RunTelemetry:
    """The telemetry of one run."""

    def __init__(
        self,
        source: FollowedRun,
        settings: TelemetrySettings,
        notes: ProblemNotes,
        interval_s: float = EXPORT_INTERVAL_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        logging.disable()  # the SDK logs each failure, with the URL
        self._source, self._notes, self._interval_s = source, notes, interval_s
        self._exporters = _Exporters(settings.url, request_timeout_s)
        self._filter = FindingFilter()
        self._totals = RunTotals()
        self._rounds = RoundTracker()
        self._has_ended = asyncio.Event()
        self._picture: JobPicture | None = None
        self._resource: Any = None
        self._writer: SpanWriter | None = None
        self._findings: deque[Finding] = deque(maxlen=MAX_WAITING)
        self._spans: deque[Any] = deque(maxlen=MAX_WAITING)

    async def run(self) -> None:
        """Send until the run has ended, and its end."""
        exporting = asyncio.create_task(self._export_regularly())
        try:
            async for message in self._source.messages():
                self._take_in(message)
        except FeedError as error:
            self._notes.write(f"metrics and findings are no longer sent (--otlp): {error}")
        finally:
            # An export that is cut off might have been taken, and would be sent twice.
            self._has_ended.set()
            await exporting
            self._source.close()
            await self._export()

    def _take_in(self, message: Message | SourceChanged) -> None:
        if isinstance(message, Course):
            self._totals.add_course(message.points)
        elif isinstance(message, FindingMessage) and self._filter.is_new(message.finding):
            self._findings.append(message.finding)
        elif isinstance(message, SnapshotMessage):
            snapshot = message.snapshot
            if self._writer is None:
                self._resource = make_resource(snapshot.run)
                self._writer = SpanWriter(snapshot.run, self._resource)
            self._totals.add(snapshot)
            self._picture = JobPicture(snapshot, self._totals)
            self._spans.extend(self._writer.spans(self._rounds.take_in(snapshot)))

    async def _export_regularly(self) -> None:
        while not self._has_ended.is_set():
            try:
                await asyncio.wait_for(self._has_ended.wait(), self._interval_s)
            except TimeoutError:
                await self._export()

    async def _export(self) -> None:
        """Send what there is; what is not taken waits for the next time. Says once that it fails."""
        if self._picture is None:
            return
        data = metrics_data(self._picture, self._resource)
        findings, spans = list(self._findings), list(self._spans)
        records = [finding_record(f, self._resource) for f in findings]
        why = await self._try(lambda: self._exporters.metrics.export(data))
        if not why and records:
            why = await self._try(lambda: self._exporters.logs.export(records))
            self._drop_sent(self._findings, findings, why)
        if not why and spans:
            why = await self._try(lambda: self._exporters.spans.export(spans))
            self._drop_sent(self._spans, spans, why)
        if why:
            self._notes.report(
                PROBLEM, f"metrics and findings are not sent (--otlp): {why}; the job goes on"
            )
        else:
            self._notes.resolve(PROBLEM, "metrics and findings are sent again")

    @staticmethod
    def _drop_sent(waiting: deque[Any], sent: list[Any], why: str) -> None:
        if not why:
            for entry in sent:
                with contextlib.suppress(ValueError):
                    waiting.remove(entry)

    async def _try(self, export: Any) -> str:
        """Return why the collector did not take it, or ""."""
        try:
            result = await call_in_thread(export, EXPORT_TIMEOUT_S)
        except TimeoutError:
            return f"no answer within {EXPORT_TIMEOUT_S:g} s"
        except Exception as error:
            return type(error).__name__  # its text may quote the URL
        is_taken = result.name == "SUCCESS"
        return "" if is_taken else "the collector refuses them, or nobody answers"
