"""The metrics of a run as scrapers get them, and what happens where they cannot be reported."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.feed.messages import FeedError, Message
from reported import dashboard_queries
from watched import PlayedSource, hanging_snapshot, healthy_snapshot

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from allaboard.faces.metrics import metrics_server, serve_metrics
from allaboard.faces.metrics.metrics_server import linger_s
from allaboard.faces.metrics.metrics_settings import MetricsSettings
from allaboard.faces.metrics.serve_metrics import MetricsFace

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="prometheus is not installed")
ROOT = Path(__file__).parents[3]


class UnendedSource(PlayedSource):
    """Plays its messages, and ends when it is told."""

    def __init__(self, *snapshots: object) -> None:
        super().__init__(*snapshots)  # type: ignore[arg-type]
        self.ended = asyncio.Event()

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        for message in self.played:
            yield message
        await self.ended.wait()


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


async def wait_until(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not is_true():
            await asyncio.sleep(0.02)


def with_face(
    scenario: Callable[[UnendedSource, list[str]], Awaitable[None]], **settings: object
) -> None:
    async def run() -> None:
        notes: list[str] = []
        source = UnendedSource(hanging_snapshot())
        face = MetricsFace(source, MetricsSettings(**settings), ProblemNotes(notes.append), 0.0)  # type: ignore[arg-type]
        task = asyncio.create_task(face.run())
        try:
            await scenario(source, notes)
        finally:
            source.ended.set()
            await asyncio.wait_for(task, 30)
        assert source.is_closed

    asyncio.run(run())


def url_of(notes: list[str]) -> str:
    return next(n for n in notes if "http" in n).rpartition(" ")[2]


@needs_promtool
def test_prometheus_has_no_objection_to_what_is_scraped() -> None:
    async def scenario(source: UnendedSource, notes: list[str]) -> None:
        await wait_until(lambda: notes)
        text = await asyncio.to_thread(fetch, url_of(notes))
        assert (
            'allaboard_finding{name="stopped",rank="1",rule="HANG001",run="j",severity="error"} 1.0'
            in text
        )
        assert 'allaboard_step_seconds_bucket{le="+Inf",run="j"} 0.0' in text
        assert PROMTOOL is not None
        checked = subprocess.run(
            [PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        # It takes "for" and "name" as they are; its only wish is about units that are not bytes or seconds.
        assert checked.returncode == 0, checked.stdout + checked.stderr

    with_face(scenario, host="127.0.0.1", port=0)


@needs_promtool
def test_the_alerts_are_valid_and_fire_when_they_should() -> None:
    assert PROMTOOL is not None
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            [PROMTOOL, *words],
            cwd=ROOT / "contrib/prometheus",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_queries_of_the_dashboard_are_promql(tmp_path: Path) -> None:
    queries = [expression for _, expression in dashboard_queries()]
    rules = [{"record": f"panel:{n}", "expr": query} for n, query in enumerate(queries)]
    file = tmp_path / "queries.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and f"{len(queries)} rules found" in done.stdout, done.stderr


def test_a_port_that_is_taken_is_said_once_and_taken_when_it_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve_metrics, "LISTEN_AGAIN_S", 0.05)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]

    async def scenario(source: UnendedSource, notes: list[str]) -> None:
        await wait_until(lambda: notes)
        await asyncio.sleep(0.2)
        assert notes == [
            f"metrics are not reported at 127.0.0.1:{port}: port {port} is taken on 127.0.0.1; it is tried "
            f"again until it is free. By whom: ss -ltnp 'sport = :{port}'"
        ]
        taken.close()
        await wait_until(lambda: len(notes) > 1)
        assert notes[1] == f"metrics for Prometheus: http://127.0.0.1:{port}/metrics"
        assert "allaboard_ranks" in await asyncio.to_thread(fetch, url_of(notes))

    with_face(scenario, host="127.0.0.1", port=port)


def test_scrapers_that_hang_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.3)

    async def scenario(source: UnendedSource, notes: list[str]) -> None:
        await wait_until(lambda: notes)
        url = url_of(notes)
        address = "127.0.0.1", int(url.rpartition(":")[2].partition("/")[0])
        silent = [socket.create_connection(address) for _ in range(metrics_server.MAX_SCRAPES + 4)]
        await asyncio.sleep(1.0)  # the silent ones are closed
        assert "allaboard_ranks" in await asyncio.to_thread(fetch, url)
        for connection in silent:
            connection.close()

    with_face(scenario, host="127.0.0.1", port=0)


def test_the_file_is_whole_and_a_broken_disk_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "job.prom"

    async def scenario(source: UnendedSource, notes: list[str]) -> None:
        await wait_until(path.exists)
        assert path.read_text().count("allaboard_finding{") == 1
        assert [p.name for p in tmp_path.iterdir()] == ["job.prom"]

    with_face(scenario, file=str(path))
    assert path.exists()  # the last one stays

    async def broken(source: UnendedSource, notes: list[str]) -> None:
        await wait_until(lambda: notes)
        assert notes == [
            f"metrics are not written to {tmp_path}/no/job.prom: no such file or directory"
        ]

    with_face(broken, file=str(tmp_path / "no/job.prom"))


def test_a_feed_that_cannot_be_read_is_said() -> None:
    class Refusing(UnendedSource):
        async def messages(self) -> AsyncIterator[Message | SourceChanged]:
            raise FeedError("64 clients read this feed already")
            yield

    async def run() -> None:
        notes: list[str] = []
        settings = MetricsSettings(host="127.0.0.1", port=-1)
        await MetricsFace(Refusing(healthy_snapshot()), settings, ProblemNotes(notes.append)).run()
        assert notes == ["metrics are no longer reported: 64 clients read this feed already"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("scraped_at", "seconds"),
    [([], 0.0), ([90.0], 60.0), ([80.0, 95.0], 17.5), ([10.0, 25.0], 0.0), ([0.0, 99.0], 60.0)],
)
def test_the_outcome_is_served_until_the_next_scrape_is_due(
    scraped_at: list[float], seconds: float
) -> None:
    assert linger_s(scraped_at, 100.0) == seconds
