"""The status of a TrainJob, against a server that takes what Kubeflow Trainer's does."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest

from agent_fakes import FakeStatus
from allaboard.clock import FakeClock
from allaboard.facts import Certainty, Finding, JobView, Severity, Stage, Who
from allaboard.facts.samples import ended_member, sample_job, sample_member
from allaboard.schedulers.job_signals import JobSignals
from allaboard.schedulers.scheduler_options import SchedulerOptions
from allaboard.schedulers.trainer_status import (
    TrainerServer,
    TrainerStatusReporter,
    find_trainer_server,
    missing_server,
    post_status,
    trainer_status,
)
from certificates import authority, signed

SCHEMA = json.loads(
    (Path(__file__).parent / "kubernetes_schemas" / "TrainerStatus.json").read_text()
)
UTC = "2026-11-26T02:00:00.000Z"


class Trainer(BaseHTTPRequestHandler):
    """POST with the token of the TrainJob's service account; 403 without, 422 for what the CRD refuses."""

    reports: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = body.get("trainerStatus", {})
        if self.headers["Authorization"] != "Bearer secret of the pod":
            self.send_response(403)
        elif not jsonschema.Draft202012Validator(SCHEMA).is_valid(status):
            self.send_response(422)
        else:
            self.reports.append(status)
            self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TrainerServer]:
    by = authority(tmp_path, "ca")
    files = signed(tmp_path, "trainer", by, "subjectAltName=IP:127.0.0.1\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    listening = HTTPServer(("127.0.0.1", 0), Trainer)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    token = tmp_path / "token"
    token.write_text("secret of the pod\n")
    Trainer.reports.clear()
    Trainer.protocol_version = "HTTP/1.0"
    yield TrainerServer(f"https://127.0.0.1:{listening.server_port}/status", by[1], token)
    listening.shutdown()
    listening.server_close()
    thread.join()


def finding(severity: Severity, name: str, over: str | None = None) -> Finding:
    return Finding(
        rule="HANG001", name=name, severity=severity, certainty=Certainty.CERTAIN, over=over,
        stage=Stage.RUNTIME, who=(Who(index=1, rank=1),), summary="", evidence=(), fix="",
    )  # fmt: skip


def metrics(view: JobView, *findings: Finding) -> dict[str, str]:
    body = trainer_status(view, findings, UTC)["trainerStatus"]
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(body), body
    return {m["name"]: m["value"] for m in body["metrics"]}


def test_progress_and_reason_are_metrics() -> None:
    view = sample_job(sample_member(0, step=40, last_loss=0.25), ended_member(1, signal=9))
    said = metrics(view, finding(Severity.WARNING, "slow"), finding(Severity.ERROR, "stopped"))
    assert said == {
        "allaboard_workers_alive": "1",
        "allaboard_steps": "40",
        "allaboard_loss": "0.25",
        "allaboard_finding": "HANG001 stopped (worker 1)",
    }


def test_what_has_passed_and_what_is_long_is_left_out() -> None:
    view = sample_job(sample_member(0))
    assert "allaboard_finding" not in metrics(view, finding(Severity.ERROR, "x", over=UTC))
    assert len(metrics(view, finding(Severity.ERROR, "x" * 200))["allaboard_finding"]) == 64


def test_the_server_takes_a_report(server: TrainerServer) -> None:
    body = trainer_status(sample_job(sample_member(0)), (), UTC)
    assert post_status(server, body) == ""
    assert Trainer.reports == [body["trainerStatus"]]


def test_a_refused_report_is_one_sentence(server: TrainerServer) -> None:
    server.token_path.write_text("of another pod")
    assert "403" in post_status(server, trainer_status(sample_job(), (), UTC))
    stranger = server._replace(ca_path=server.token_path)
    assert post_status(stranger, {}).startswith("Trainer did not take the status: ")
    assert Trainer.reports == []


def test_what_is_no_answer_and_what_is_no_token_is_one_sentence_without_the_secret(
    server: TrainerServer,
) -> None:
    Trainer.protocol_version = "\xff garbage"
    said = post_status(server, trainer_status(sample_job(), (), UTC))
    assert said == "Trainer did not take the status: its answer is no HTTP"
    server.token_path.write_text("secret\nof the pod")
    said = post_status(server, {})
    assert said == "Trainer did not take the status: the token is not one line"


def test_one_report_that_is_refused_is_forgotten_once_the_next_is_taken(
    server: TrainerServer,
) -> None:
    server.token_path.write_text("of another pod")
    reporter = TrainerStatusReporter(server)
    reporter.report(100.0, trainer_status(sample_job(), (), UTC))
    deadline = time.monotonic() + 30
    while not reporter.error and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "403" in reporter.error
    server.token_path.write_text("secret of the pod")  # it is renewed every hour
    reporter.close(trainer_status(sample_job(), (), UTC))
    assert reporter.error == ""


def test_asked_for_outside_of_a_trainjob_it_says_that_nothing_is_reported() -> None:
    asked = SchedulerOptions(trainer_status=True)
    said = JobSignals(asked, FakeClock(), {}).close(0.0, FakeStatus())
    assert said.startswith(
        "--trainer-status: nothing is reported, because KUBEFLOW_TRAINER_SERVER_URL"
    )
    assert JobSignals(asked, FakeClock(), {"RANK": "1"}).close(0.0, FakeStatus()) == ""
    assert JobSignals(SchedulerOptions(), FakeClock(), {}).close(0.0, FakeStatus()) == ""


def test_the_last_report_is_sent_before_the_end(server: TrainerServer) -> None:
    reporter = TrainerStatusReporter(server)
    assert reporter.is_due(100.0)
    reporter.report(100.0, trainer_status(sample_job(sample_member(0, step=1)), (), UTC))
    assert not reporter.is_due(114.0) and reporter.is_due(115.0)
    last = trainer_status(sample_job(sample_member(0, step=2)), (), UTC)
    reporter.close(last)
    assert Trainer.reports[-1] == last["trainerStatus"] and reporter.error == ""


def test_the_server_is_that_of_trainers_variables(tmp_path: Path) -> None:
    variables = {
        "KUBEFLOW_TRAINER_SERVER_URL": "https://trainer.example/status",
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": "/ca.crt",
        "KUBEFLOW_TRAINER_SERVER_TOKEN": "/token",
    }
    assert find_trainer_server(variables) == TrainerServer(
        "https://trainer.example/status", Path("/ca.crt"), Path("/token")
    )
    assert missing_server(variables) == ""
    for name in variables:
        assert find_trainer_server({**variables, name: ""}) is None
        assert f"because {name} is not set" in missing_server({**variables, name: ""})
    plain = {**variables, "KUBEFLOW_TRAINER_SERVER_URL": "http://x"}
    assert "does not begin with https://" in missing_server(plain)
    assert find_trainer_server({**variables, "KUBEFLOW_TRAINER_SERVER_URL": "http://x"}) is None
