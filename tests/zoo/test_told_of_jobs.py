"""Real jobs tell of their faults: a stopped worker, the job that goes on, its end; and train on where nobody
can be told."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from reported import answering, ranks_of, receiving, refusing, running_job, wait_until

pytest.importorskip("apprise", reason="apprise is not installed")
pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http", reason="the exporter is not installed"
)
pytestmark = pytest.mark.timeout(1500)
SECRET = "hunter2secret"


def assert_secret_is_nowhere(folder: Path) -> None:
    for file in [*folder.rglob("*"), folder.parent / f"{folder.name}.err"]:
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_a_stopped_worker_the_job_that_goes_on_and_its_end_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with receiving() as (address, came):
        urls = tmp_path / "urls"
        urls.write_text(f"# the hook\njson://user:{SECRET}@{address}/file\n")
        options = (
            "--notify", f"json://user:{SECRET}@{address}/{SECRET}", "--notify-file", str(urls),
            f"--heartbeat-url=http://{address}/{SECRET}/beat",
            "--on-finding", f": {SECRET}; cat >> {tmp_path}/findings",
            "--otlp", f"http://user:{SECRET}@{address}",
        )  # fmt: skip

        def titles(path: str) -> list[str]:
            return [m["title"] for m in came if m["path"] == path]

        with running_job(folder, *options) as job:
            wait_until(lambda: [r["activity"] for r in ranks_of(folder)] == ["training"] * 2)
            victim = ranks_of(folder)[1]["pid"]
            os.kill(victim, signal.SIGSTOP)
            try:
                wait_until(lambda: titles("/file"))
            finally:
                os.kill(victim, signal.SIGCONT)
            wait_until(lambda: len(titles("/file")) > 1)
            os.kill(victim, signal.SIGKILL)
            assert job.wait(200) == 1
            # Told before the run ended: in a container nothing comes after it.
            said = titles("/file")
    assert "worker 1 is stopped" in said[0]
    assert "goes on at step" in said[1] and "has ended (failed)" in said[2]
    assert len(said) == 3 and titles(f"/{SECRET}") == said
    (fault, *_) = [m["message"] for m in came if m["path"] == "/file"]
    assert f"do     kill -CONT {victim}" in fault and f"{folder}/journal.jsonl" in fault
    assert f"{folder}/report.html" in [m["message"] for m in came if m["path"] == "/file"][2]
    assert any(m["path"] == f"/{SECRET}/beat" for m in came)
    findings = [
        json.loads(line)["finding"] for line in (tmp_path / "findings").read_text().splitlines()
    ]
    stopped = [f for f in findings if f["rule"] == "HANG001"]
    assert ["over" in f for f in stopped] == [False, True]
    assert {"/v1/metrics", "/v1/logs", "/v1/traces"} <= {m["path"] for m in came}
    assert (folder / "notify.log").read_text() == (folder / "telemetry.log").read_text() == ""
    assert_secret_is_nowhere(folder)
    assert "(redacted)" in (folder / "report.json").read_text()


def test_where_nobody_can_be_told_the_job_trains_and_ends_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with refusing() as deaf, answering(None) as silent:
        options = (
            "--notify", f"json://user:{SECRET}@{deaf}", "--notify", f"no-such://{SECRET}",
            "--heartbeat-url", f"http://{silent}/{SECRET}", "--on-finding", "exit 7",
            "--otlp", f"http://user:{SECRET}@{deaf}",
        )  # fmt: skip
        with running_job(folder, *options, steps=100) as job:
            assert job.wait(800) == 0
    said = (tmp_path / "run.err").read_text()
    assert said.count("notification 2 (no-such://…) cannot be sent") == 1
    assert (
        said.count("metrics and findings are not sent (--otlp)") <= 1
    )  # the end waits a bounded time
    assert_secret_is_nowhere(folder)
