"""A real Prometheus scrapes a real job: a stopped worker becomes a finding and an alert, and goes again."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from free_ports import free_port
from reported import ALLABOARD, WITHIN_S, dashboard_queries, ranks_of, running_job

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
PROMETHEUS = shutil.which("prometheus")
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(1500)


@contextmanager
def running_prometheus(folder: Path, target: str) -> Iterator[str]:
    """Prometheus with our alerts, and the address of its API."""
    address = f"127.0.0.1:{free_port()}"
    shutil.copy(ROOT / "contrib/prometheus/alerts.yml", folder)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        "rule_files: [alerts.yml]\n"
        f'scrape_configs: [{{job_name: allaboard, static_configs: [{{targets: ["{target}"]}}]}}]\n'
    )
    assert PROMETHEUS is not None
    with (folder / "prometheus.log").open("w") as log:
        server = subprocess.Popen(
            [PROMETHEUS, "--config.file=prometheus.yml", f"--web.listen-address={address}",
             f"--storage.tsdb.path={folder / 'data'}"],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=log,
        )  # fmt: skip
    try:
        yield f"http://{address}/api/v1/query?query="
    finally:
        server.terminate()
        server.wait(30)


def wait_for(api: str, query: str) -> float:
    """The value of a query once it has one."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(api + urllib.parse.quote(query), timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
            if result:
                return float(result[0]["value"][1])
        time.sleep(0.3)
    raise AssertionError(f"never {query}")


def target_of(folder: Path) -> str:
    """Where the metrics are served, as the run says it."""
    deadline = time.monotonic() + WITHIN_S
    err = folder.parent / f"{folder.name}.err"
    while time.monotonic() < deadline:
        if found := re.search(r"metrics for Prometheus: http://(\S+)/metrics", err.read_text()):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(err.read_text())


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed")
def test_a_stopped_worker_is_a_finding_and_an_alert(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with (
        running_job(folder, "--metrics", "0"),
        running_prometheus(tmp_path, target_of(folder)) as api,
    ):
        wait_for(api, 'increase(allaboard_steps_total{rank="1"}[10s]) > 5')
        assert wait_for(api, 'allaboard_ranks{activity="training"} == 2') == 2
        victim = ranks_of(folder)[1]["pid"]
        os.kill(victim, signal.SIGSTOP)
        try:
            finding = 'allaboard_finding{rule="HANG001",rank="1",severity="error"}'
            assert wait_for(api, finding) == 1
            wait_for(
                api, 'increase(allaboard_waiting_seconds_total{rank="0",for="ranks"}[10s]) > 1'
            )
            wait_for(api, 'ALERTS{alertname="AllaboardError",rule="HANG001",rank="1"}')
            for panel, query in dashboard_queries():
                if "gpu" not in query.lower():
                    assert wait_for(api, f"count({query})") > 0, panel
        finally:
            os.kill(victim, signal.SIGCONT)
        wait_for(api, f"absent({finding})")
        wait_for(api, 'allaboard_run_phase{phase="running"} == 1')
        assert 0 < wait_for(api, "allaboard_goodput_ratio") < 1
        wait_for(api, 'allaboard_step_seconds_bucket{le="+Inf"} > 10')
    assert (folder / "metrics.log").read_text() == ""


def test_two_jobs_with_one_port_and_a_full_disk_train_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with running_job(first, "--metrics", "0"):
        port = target_of(first).rpartition(":")[2]
        options = ("--metrics", port, "--metrics-file", str(tmp_path / "m.prom"))
        (tmp_path / "m.prom").mkdir()  # nothing can take this name
        beside = subprocess.Popen(
            [*ALLABOARD, "watch", str(first), "--metrics", "0"], stderr=subprocess.PIPE, text=True
        )
        with running_job(second, *options, steps=300) as job:
            assert job.wait(WITHIN_S) == 0
        assert beside.stderr is not None
        url = beside.stderr.readline().rpartition(" ")[2].strip()
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert b"allaboard_run_info{" in answer.read()
    with beside:  # the first run has ended
        beside.send_signal(signal.SIGINT)
        assert beside.wait(60) == 0
    said = (tmp_path / "second.err").read_text()
    assert said.count(f"metrics are not reported at 127.0.0.1:{port}: port {port} is taken") == 1
    assert said.count("m.prom: is a directory") == 1
