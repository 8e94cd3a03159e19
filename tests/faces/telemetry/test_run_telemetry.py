"""What a collector receives, read with the published protobuf; and collectors that refuse, hang or talk
nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec
import pytest

pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http", reason="the OTLP exporter is not installed"
)

from allaboard.faces.metrics.metric_table import JobPicture
from allaboard.faces.metrics.run_totals import RunTotals
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.telemetry import run_telemetry
from allaboard.faces.telemetry.otlp_records import metrics_data
from allaboard.faces.telemetry.run_telemetry import RunTelemetry
from allaboard.faces.telemetry.telemetry_settings import TelemetrySettings
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.facts import GpuState, Snapshot
from allaboard.facts.snapshot.host_state import HostState, LoadState
from allaboard.feed.messages import FindingMessage, Message, SnapshotMessage
from reported import answering, refusing, serving
from watched import hanging_snapshot, healthy_snapshot, stopped_finding

logs_service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
metrics_service = pytest.importorskip(
    "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2"
)
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

REQUESTS = {
    "/v1/logs": logs_service.ExportLogsServiceRequest,
    "/v1/metrics": metrics_service.ExportMetricsServiceRequest,
    "/v1/traces": trace_service.ExportTraceServiceRequest,
}
SECRET = "hunter2secret"


@contextmanager
def collecting(
    statuses: Sequence[int] = (200,), body: bytes = b""
) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """A collector: its address, and the requests that came by path. The last status stays."""
    left = list(statuses)
    came: dict[str, list[Any]] = {path: [] for path in REQUESTS}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            came[self.path].append(REQUESTS[self.path].FromString(data))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with serving(Handler) as address:
        yield f"http://{address}", came


class Course:
    """Plays messages, with a moment between them; the last one when ``is_over``."""

    def __init__(self, *messages: Message, is_over: Callable[[], bool] = lambda: True) -> None:
        self._messages = messages
        self._is_over = is_over

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        for message in self._messages[:-1]:
            yield message
            await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            while not self._is_over():
                await asyncio.sleep(0.01)
        yield self._messages[-1]

    def close(self) -> None:
        pass


def ended(snapshot: Snapshot, elapsed_s: float, outcome: str) -> Snapshot:
    run = msgspec.structs.replace(
        snapshot.run,
        outcome=outcome,
        reason="no progress",
        elapsed_s=elapsed_s,
        started="2026-11-25T11:00:00Z",
    )
    return msgspec.structs.replace(snapshot, run=run)


COURSE = (
    SnapshotMessage(snapshot=ended(healthy_snapshot(), 60.0, "")),
    FindingMessage(finding=stopped_finding()),
    FindingMessage(finding=stopped_finding()),  # after a reconnection it comes again
    SnapshotMessage(snapshot=ended(hanging_snapshot(), 80.0, "")),
    SnapshotMessage(snapshot=ended(hanging_snapshot(), 100.0, "hang")),
)


def send(
    url: str,
    *messages: Message,
    interval_s: float = 60.0,
    timeout_s: float = 5.0,
    is_over: Callable[[], bool] = lambda: True,
) -> list[str]:
    notes: list[str] = []

    async def run() -> None:
        course, settings = Course(*messages, is_over=is_over), TelemetrySettings(url=url)
        await RunTelemetry(
            course, settings, ProblemNotes(notes.append), interval_s, timeout_s
        ).run()

    asyncio.run(run())
    return notes


def attributes(entry: Any) -> dict[str, Any]:
    return {a.key: a.value for a in entry.attributes}


def test_a_collector_gets_metrics_findings_and_rounds() -> None:
    with collecting() as (url, came):
        assert send(url, *COURSE[:4], interval_s=0.005) == []
        before_end = came["/v1/metrics"][-1]
        assert send(url, *COURSE) == []
    (resource_metrics,) = before_end.resource_metrics
    assert attributes(resource_metrics.resource)["service.instance.id"].string_value == "j"
    metrics = {m.name: m for m in resource_metrics.scope_metrics[0].metrics}
    (finding,) = metrics["allaboard.finding"].gauge.data_points
    assert finding.as_double == 1 and attributes(finding)["rank"].string_value == "1"
    steps = metrics["allaboard.steps"].sum
    assert steps.is_monotonic and sum(p.as_double for p in steps.data_points) == 1200
    assert metrics["allaboard.run_seconds"].unit == "s"
    (durations,) = metrics["allaboard.step_seconds"].histogram.data_points
    assert len(durations.bucket_counts) == len(durations.explicit_bounds) + 1
    (logs,) = came["/v1/logs"][-1].resource_logs
    (record,) = logs.scope_logs[0].log_records
    assert record.event_name == "allaboard.finding"
    assert record.body.string_value == "worker 1 is stopped (SIGSTOP or Ctrl-Z)"
    assert attributes(record)["allaboard.fix"].string_value == "kill -CONT 101"
    (spans,) = came["/v1/traces"][-1].resource_spans
    round_span, run_span = spans.scope_spans[0].spans
    assert (round_span.name, run_span.name) == ("round 0", "run")
    assert round_span.parent_span_id == run_span.span_id
    assert round_span.end_time_unix_nano - round_span.start_time_unix_nano == 100 * 10**9
    assert run_span.status.message == "no progress"


def test_units_are_those_of_ucum() -> None:
    gpu = GpuState(index=0, clock_mhz=1410, temperature_c=70, power_w=300.0)
    host = HostState(host="a", gpus=(gpu,), load=LoadState(received_per_s=5.0))
    snapshot = msgspec.structs.replace(healthy_snapshot(), hosts=(host,))
    picture = JobPicture(snapshot, RunTotals())
    (resource_metrics,) = metrics_data(picture, None).resource_metrics
    units = {m.name: m.unit for m in resource_metrics.scope_metrics[0].metrics}
    assert units["allaboard.gpu_clock_hertz"] == "Hz"
    assert units["allaboard.gpu_temperature_celsius"] == "Cel"
    assert units["allaboard.gpu_power_watts"] == "W"
    assert units["allaboard.gpu_memory_bytes"] == "By"
    assert units["allaboard.host_received_bytes_per_second"] == "By/s"
    assert units["allaboard.gpu_nvlink_errors"] == ""


def test_a_collector_that_fails_is_said_once_without_its_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_telemetry, "EXPORT_TIMEOUT_S", 3.0)
    for place in (refusing(), answering(None)):
        with place as address:
            (note,) = send(
                f"http://user:{SECRET}@{address}", *COURSE, interval_s=0.01, timeout_s=0.4
            )
        assert (
            note.startswith("metrics and findings are not sent (--otlp): ") and SECRET not in note
        )
    with collecting([400], b"\xff garbage") as (url, _):
        (note,) = send(url, *COURSE, timeout_s=1.0)
        assert "refuses" in note


def test_what_waited_is_sent_when_the_collector_answers_again() -> None:
    statuses = [400, 200, 200, 200]
    with collecting(statuses) as (url, came):
        notes = send(url, *COURSE, interval_s=0.02, is_over=lambda: bool(came["/v1/logs"]))
    assert notes == [
        "metrics and findings are not sent (--otlp): the collector refuses them, or nobody answers; the job "
        "goes on",
        "metrics and findings are sent again",
    ]
    assert sum(len(request.resource_logs) for request in came["/v1/logs"]) == 1
    assert len(came["/v1/traces"]) == 1
