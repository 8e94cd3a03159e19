"""Sessions of TensorFlow 1 that wait or are lost: once is healthy, again and again is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding
from allaboard.rules.engine.catalogue import load_catalogue

WAITS = (
    "INFO:tensorflow:Waiting for model to be ready.  Ready_for_local_init_op:  Variables not initialized: "
    "global_step, dense/kernel, ready: None\n"
)
LOST = (
    "INFO:tensorflow:An error was raised. This may be due to a preemption in a connected worker or "
    "parameter server. "
    "The current session will be closed and a new session will be created. Error: Socket closed\n"
    "INFO:tensorflow:Graph was finalized.\n"
)
CREATED = (
    "INFO:tensorflow:An error was raised while a session was being created. This may be due to a "
    "preemption of a "
    "connected worker or parameter server. A new session will be created. Error: OS Error\n"
)
UNREACHED = "E0625 12:21:16.5 3825 tcp_client_posix.c:191] failed to connect to 'ipv4:192.0.2.7:2222': {0}\n"
STEP = "INFO:tensorflow:loss = 0.4, step = 100 (1.2 sec)\n"
BEGUN = "INFO:tensorflow:Running local_init_op.\n"
GAVE_UP = (
    "tensorflow.python.framework.errors_impl.DeadlineExceededError: Session was not ready after "
    "waiting 30 secs.\n"
)


def findings(folder: Path, text: str) -> tuple[Finding, ...]:
    (folder / "worker-1.log").write_text(text)
    return diagnose_paths([folder / "worker-1.log"], load_catalogue()).findings


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (WAITS * 2, "PS002"),
        (BEGUN + STEP + WAITS * 2, "PS002"),
        (WAITS + GAVE_UP, "PS002"),
        (LOST * 2, "EXIT005"),
        (STEP + LOST * 3, "EXIT005"),
        (STEP + LOST * 2 + BEGUN, "EXIT005"),
        (CREATED * 2, "EXIT005"),
        (UNREACHED.format("timeout occurred") * 2, "NET003"),
        (UNREACHED.format("socket error: connection refused") * 2, "NET002"),
    ],
)
def test_what_repeats_without_progress_is_told(tmp_path: Path, text: str, rule: str) -> None:
    (finding,) = findings(tmp_path, text)
    assert finding.rule == rule


@pytest.mark.parametrize(
    "text",
    [
        WAITS,
        WAITS * 3 + BEGUN + STEP,
        LOST,
        STEP + LOST + STEP + LOST,
        STEP + LOST * 3 + STEP,
        CREATED,
        CREATED * 2 + BEGUN + STEP,
        UNREACHED.format("timeout occurred"),
        UNREACHED.format("timeout occurred") * 3 + BEGUN,
    ],
)
def test_what_a_healthy_run_writes_is_silent(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, text) == ()


@pytest.mark.parametrize(("call", "count"), [("Heartbeat", 1), ("ShutdownTask", 0)])
def test_a_leader_that_has_left_is_missed_only_before_the_end(
    tmp_path: Path, call: str, count: int
) -> None:
    text = (
        "Epoch 3/3\nE coordination_service_agent.cc:478] status: UNAVAILABLE: failed to connect to all "
        "addresses\n"
        "Additional GRPC error information from remote target /job:worker/replica:0/task:0 while calling "
        f"/tensorflow.CoordinationService/{call}:\n"
        ':{"description":"Failed to pick subchannel"}\n'
    )
    assert len(findings(tmp_path, text)) == count
