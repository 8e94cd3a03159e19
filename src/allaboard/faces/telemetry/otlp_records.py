"""Metrics, findings and rounds as the records of OpenTelemetry's SDK."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Status, StatusCode

from allaboard import __version__
from allaboard.faces.metrics.metric_table import STEP_SECONDS, JobPicture
from allaboard.faces.metrics.read_metrics import Family, read_families
from allaboard.faces.metrics.step_histogram import BOUNDS_S, StepHistogram
from allaboard.faces.telemetry.round_spans import RoundSpan
from allaboard.facts import Finding, RunState, Severity
from allaboard.report.plain_text import clean

SCOPE = InstrumentationScope("allaboard", __version__)
UNITS = {
    "_seconds": "s", "_bytes": "By", "_bytes_per_second": "By/s", "_ratio": "1",
    "_hertz": "Hz", "_celsius": "Cel", "_watts": "W",
}  # fmt: skip
"""Units in UCUM by the end of a metric's name, as OpenTelemetry's conventions have them."""
SEVERITIES = {
    Severity.ERROR: SeverityNumber.ERROR,
    Severity.WARNING: SeverityNumber.WARN,
    Severity.INFO: SeverityNumber.INFO,
}


def make_resource(run: RunState) -> Any:
    """Return the attributes that all records of a run share."""
    return Resource(
        {
            "service.name": "allaboard",
            "service.version": __version__,
            "service.instance.id": clean(run.job),
            "host.name": clean(run.host),
            "allaboard.framework": clean(run.framework),
        }
    )


def unix_nanoseconds(utc: str) -> int:
    """Return a time of day (ISO 8601) as nanoseconds since 1970; 0 if it is none."""
    try:
        return int(datetime.fromisoformat(utc).timestamp() * 1e9)
    except ValueError:
        return 0


def metrics_data(picture: JobPicture, resource: Any) -> Any:
    """Return all metrics of a run at the time of its snapshot."""
    started_ns = unix_nanoseconds(picture.snapshot.run.started)
    taken_ns = unix_nanoseconds(picture.snapshot.taken_at)
    metrics = [_metric(f, started_ns, taken_ns) for f in read_families(picture)]
    metrics.append(_step_seconds(picture.totals.step_seconds, started_ns, taken_ns))
    scope = ScopeMetrics(SCOPE, metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, started_ns: int, taken_ns: int) -> Any:
    metric = family.metric
    points = [
        NumberDataPoint(dict(zip(metric.labels, labels, strict=True)), started_ns, taken_ns, value)
        for labels, value in family.series
    ]
    name = metric.name.removesuffix("_total")
    unit = next((u for end, u in UNITS.items() if name.endswith(end)), "")
    data = (
        Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        if metric.kind == "counter"
        else Gauge(points)
    )
    return Metric(otel_name(name), metric.help, unit, data)


def otel_name(name: str) -> str:
    """Return the name with the project as its namespace: ``allaboard.steps``."""
    return name.replace("allaboard_", "allaboard.", 1)


def _step_seconds(histogram: StepHistogram, started_ns: int, taken_ns: int) -> Any:
    name, explanation = STEP_SECONDS
    cumulative = [0, *(count for _, count in histogram.buckets)]
    counts = [upper - lower for lower, upper in pairwise(cumulative)]
    point = HistogramDataPoint(
        {}, started_ns, taken_ns, histogram.count, histogram.sum_s, counts, BOUNDS_S,
        float("inf"), float("-inf"),
    )  # fmt: skip
    data = Histogram([point], AggregationTemporality.CUMULATIVE)
    return Metric(otel_name(name), explanation, "s", data)


def finding_record(finding: Finding, resource: Any) -> Any:
    """Return a finding as a log record with an event name."""
    is_resolved = finding.over is not None
    severity = SeverityNumber.INFO if is_resolved else SEVERITIES[finding.severity]
    found_ns = unix_nanoseconds(finding.over or finding.at)
    attributes = {
        "allaboard.rule": clean(finding.rule),
        "allaboard.rule.name": clean(finding.name),
        "allaboard.severity": str(finding.severity),
        "allaboard.certainty": str(finding.certainty),
        "allaboard.resolved": is_resolved,
        "allaboard.ranks": [w.rank for w in finding.who if w.rank >= 0],
        "allaboard.who": [clean(str(w)) for w in finding.who],
        "allaboard.evidence": [clean(str(e)) for e in finding.evidence],
        "allaboard.fix": clean(finding.fix),
        "allaboard.where": clean(str(finding.where or "")),
    }
    record = LogRecord(
        timestamp=found_ns,
        observed_timestamp=found_ns,
        severity_number=severity,
        severity_text=severity.name,
        body=clean(finding.summary),
        attributes=attributes,
        event_name="allaboard.finding.resolved" if is_resolved else "allaboard.finding",
    )
    return ReadableLogRecord(record, resource, SCOPE)


class SpanWriter:
    """Makes the spans of one run: the run as the parent of its rounds."""

    def __init__(self, run: RunState, resource: Any) -> None:
        self._started_ns = unix_nanoseconds(run.started)
        self._tracer = TracerProvider(resource=resource).get_tracer(SCOPE.name, SCOPE.version)
        self._run = self._tracer.start_span("run", start_time=self._started_ns)

    def spans(self, rounds: Sequence[RoundSpan]) -> list[Any]:
        """Return the spans of rounds that are over."""
        context = trace.set_span_in_context(self._run)
        spans = []
        for part in rounds:
            if part.number < 0:
                span = self._run
            else:
                started_ns = self._nanoseconds(part.started_s)
                span = self._tracer.start_span(
                    f"round {part.number}", context=context, start_time=started_ns
                )
                span.set_attribute("allaboard.round", part.number)
            span.set_attribute("allaboard.steps", part.steps)
            if part.failure:
                span.set_status(Status(StatusCode.ERROR, clean(part.failure)))
            span.end(end_time=self._nanoseconds(part.ended_s))
            spans.append(span)
        return spans

    def _nanoseconds(self, elapsed_s: float) -> int:
        return self._started_ns + int(elapsed_s * 1e9)
