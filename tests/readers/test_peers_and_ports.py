"""What TensorFlow, gRPC, Kubernetes and Open MPI write of peers and ports: each beside its near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.platforms import grpc_bind_log, tensorflow_peer_log
from allaboard.facts import Exhibit
from allaboard.rules.engine.catalogue import load_catalogue
from diagnosed_texts import diagnose

LOST = "tensorflow.python.framework.errors_impl.UnavailableError: From {0}:\nSocket closed\n"
TRACEBACK = (
    'Traceback (most recent call last):\n  File "fit.py", line 3, in <module>\n'
    '  File "/v/lib/python3.8/site-packages/tensorflow/python/client/session.py", line 9, in _do_call\n'
)
STEPS = "".join(f"INFO:tensorflow:loss = 0.4, step = {n}00 (1.2 sec)\n" for n in range(1, 4))
OUTFEED = "ERROR:tensorflow:Error recorded from outfeed: From /job:worker/replica:0/task:4:\nSocket closed\n"
BIND = (
    'E1105 15:50:49.2 44 server_chttp2.cc:40] {{"description":"{0} added out of total 1 resolved",'
    '"referenced_errors":[{{"os_error":"{1}","syscall":"bind"}}],"target_address":"ipv6:[::]:2222"}}\n'
    "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server\n"
)
POD = """Name:           lm-chief-0
Containers:
  tensorflow:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       {0}
      Exit Code:    {1}
"""


@pytest.mark.parametrize("job", ["ps", "worker", "chief"])
def test_the_task_that_an_error_is_from_is_named(tmp_path: Path, job: str) -> None:
    text = TRACEBACK + LOST.format(f"/job:{job}/replica:0/task:3")
    (finding,) = diagnose(tmp_path, text)
    assert finding.summary.startswith(f"{job} 3 went away")
    assert [(w.job, w.index) for w in finding.who] == [(job, 3)]


def test_a_process_is_not_told_of_itself(tmp_path: Path) -> None:
    (finding,) = diagnose(tmp_path, TRACEBACK + LOST.format("/job:localhost/replica:0/task:0"))
    assert "localhost" not in finding.summary + finding.fix


def test_a_loss_after_which_it_trains_is_none(tmp_path: Path) -> None:
    assert diagnose(tmp_path, OUTFEED)[0].summary.startswith("worker 4 went away")
    assert not diagnose(tmp_path, OUTFEED + STEPS)


@pytest.mark.parametrize(
    ("count", "why", "rule", "next_step"),
    [
        ("No address", "Address already in use", "NET005", "ss -ltnp 'sport = :2222'"),
        ("No address", "Only one usage of each socket address", "NET005", "netstat -ano"),
        ("No address", "Cannot assign requested address", "NET017", "ip -br address"),
    ],
)
def test_the_reason_and_the_port_of_a_server_that_cannot_listen(
    tmp_path: Path, count: str, why: str, rule: str, next_step: str
) -> None:
    (finding, *_) = diagnose(tmp_path, BIND.format(count, why))
    assert finding.rule == rule and finding.fix.startswith(next_step)
    assert "2222" in finding.summary


def test_a_server_that_listens_at_one_of_two_addresses_is_well() -> None:
    line = BIND.format("Only 1 addresses", "Address already in use").partition("\n")[0]
    assert grpc_bind_log.read_log(Exhibit(name="a.log", data=line.encode())) is None


@pytest.mark.parametrize(
    ("reason", "code", "rule"),
    [("Error", 1, "EXIT003"), ("OOMKilled", 137, "RES001"), ("Error", 139, "EXIT001")],
)
def test_the_end_of_a_described_pod(tmp_path: Path, reason: str, code: int, rule: str) -> None:
    (finding,) = diagnose(tmp_path, POD.format(reason, code))
    assert finding.rule == rule
    assert "lm-chief-0" in finding.summary and "lm-chief-0" in finding.fix


def test_a_pod_that_completed_has_no_fault(tmp_path: Path) -> None:
    text = POD.format("Completed", 0).replace(
        "Waiting\n      Reason:       CrashLoopBackOff", "Running"
    )
    assert not diagnose(tmp_path, text)


def test_samples_that_are_in_no_table() -> None:
    evaluator = f"{tensorflow_peer_log.EVALUATOR.sample}\n"
    exhibit = Exhibit(name="a.log", data=evaluator.encode())
    assert tensorflow_peer_log.read_log(exhibit) is not None
    started = Exhibit(name="a.log", data=(evaluator + "Epoch 1/5\n").encode())
    assert tensorflow_peer_log.read_log(started) is None
    for message in (grpc_bind_log.UNNAMED, tensorflow_peer_log.MASTER_INIT):
        assert message.compiled.search(message.sample)


BTL = (
    "[node-b][[32355,1],2][btl_tcp_endpoint.c:796:mca_btl_tcp_endpoint_complete_connect] connect() to "
    "192.0.2.1 failed: Connection refused (111)\n"
)
PREEMPTED = (
    "slurmstepd: error: *** JOB 4711 ON node7 CANCELLED AT 2021-03-15T18:00:46 "
    "DUE TO PREEMPTION ***\n"
)
SERVER = "I tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc:450] Started server with target: {0}\n"
FIRST_TO_END = (
    "Traceback (most recent call last):\n"
    '  File "/v/bin/horovodrun", line 8, in <module>\n'
    "    sys.exit(run_commandline())\n"
    "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus "
    "causing the job "
    "to be terminated. The first process to do so was:\n"
    "Process name: 2\n"
    "Exit code: {0}\n"
)


def test_a_connection_that_failed_counts_only_if_nothing_was_trained_after(tmp_path: Path) -> None:
    (finding,) = diagnose(tmp_path, BTL)
    assert finding.rule == "NET006" and "192.0.2.1" in finding.summary
    assert not diagnose(tmp_path, BTL + STEPS)


@pytest.mark.parametrize(("code", "rule"), [(1, "EXIT003"), (137, "EXIT001")])
def test_horovodruns_exception_names_the_first_to_end(tmp_path: Path, code: int, rule: str) -> None:
    (finding,) = diagnose(tmp_path, FIRST_TO_END.format(code))
    assert finding.rule == rule and "worker 2" in finding.summary


def test_a_preemption_is_the_cause_of_what_follows_it(tmp_path: Path) -> None:
    after = PREEMPTED + TRACEBACK + LOST.partition("From")[0] + "Socket closed\n"
    assert [f.rule for f in diagnose(tmp_path, after)] == ["EXIT001"]


def test_servers_wait_for_a_coordinator_only_if_no_log_is_its_own(tmp_path: Path) -> None:
    for task in ("ps-0", "worker-0"):
        (tmp_path / f"{task}.log").write_text(SERVER.format("grpc://10.0.0.1:2222"))
    (finding,) = diagnose_paths([tmp_path], load_catalogue()).findings
    assert [w.name for w in finding.who] == ["chief 0"]
    (tmp_path / "chief-0.log").write_text("Epoch 1/2\n1/1 - loss: 0.1\n")
    assert not diagnose_paths([tmp_path], load_catalogue()).findings
