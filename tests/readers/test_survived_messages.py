"""Messages of losses and waits that a job may survive: they count only if no training goes on after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.rules.engine.catalogue import load_catalogue

DEAD_NODE = (
    "WARNING worker.py:1462 -- The node with node id: 8f20 and ip: 10.0.0.7 has been marked dead because the "
    "detector has missed too many heartbeats from it.\n"
)
NO_WORKERS = (
    "The worker group startup timed out after 30.0 seconds waiting for 8 workers. Potential\n"
)
WAITING_POD = (
    'Error from server (BadRequest): container "pytorch" in pod "job-worker-0" is waiting to start: '
    "ContainerCreating\n"
)
LOST_SENDER = (
    'W tensorflow/core/framework/op_kernel.cc:993] Unavailable: {"created":"@1487","description":"EOF"}\n'
    '         [[Node: A = _Recv[send_device="/job:ps/replica:0/task:1/cpu:0"]()]]\n'
)
NO_DRIVER = "Failed to initialize NVML: Driver/library version mismatch\n"
NO_NAME = (
    "[W socket.cpp:558] [c10d] The IPv6 network addresses of (node3, 29500) cannot be retrieved (gai error: "
    "-2 - Name or service not known).\n"
)
MESSAGES = [
    (NO_NAME, "NET001", "node3"),
    (DEAD_NODE, "EXIT010", "10.0.0.7"),
    (NO_WORKERS, "JOIN001", "8 workers within 30.0 s"),
    (LOST_SENDER, "EXIT005", "ps 1 went away"),
    (WAITING_POD, "JOIN001", "pod job-worker-0 has not started"),
    (NO_DRIVER, "LOG013", "driver's libraries"),
]
STEP = "step 3 loss 0.5\n"
"""What a worker may still write of a step that it had begun before."""
STEPS = "".join(f"step {n} loss 0.{9 - n}\n" for n in range(3))


@pytest.mark.parametrize(("text", "rule", "summary"), MESSAGES)
@pytest.mark.parametrize("before", ["", STEPS])
def test_it_is_a_failure_at_the_end(
    tmp_path: Path, before: str, text: str, rule: str, summary: str
) -> None:
    (tmp_path / "job.log").write_text(
        before + text + (STEP if text in (DEAD_NODE, NO_WORKERS, LOST_SENDER) else "")
    )
    (finding,) = diagnose_paths([tmp_path / "job.log"], load_catalogue()).findings
    assert finding.rule == rule
    assert summary in finding.summary


@pytest.mark.parametrize(("text", "rule", "summary"), MESSAGES)
def test_it_is_none_if_the_training_goes_on(
    tmp_path: Path, text: str, rule: str, summary: str
) -> None:
    (tmp_path / "job.log").write_text(STEPS + text + STEPS)
    assert diagnose_paths([tmp_path / "job.log"], load_catalogue()).findings == ()


def test_a_tensor_awaited_from_a_process_of_its_own_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(LOST_SENDER.replace("/job:ps/", "/job:localhost/"))
    findings = diagnose_paths([tmp_path / "job.log"], load_catalogue()).findings
    assert not [w for f in findings for w in f.who]
