"""How a member ended, as others tell it: peers, launchers, Kubernetes, YARN, services; beside near misses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding
from allaboard.rules.engine.catalogue import load_catalogue

LOST = (
    'Traceback (most recent call last):\n  File "fit.py", line 3, in <module>\n'
    '  File "/v/lib/python3.8/site-packages/tensorflow/python/client/session.py", line 9, in '
    "_do_call\n"
    "tensorflow.python.framework.errors_impl.UnavailableError: Socket closed\n"
)
EXITED = "srun: error: node1: task 3: Exited with exit code 1\n"
FATAL = "FATAL: the license server of node1 does not know us\n"
EVICTED = """Name:           lm-worker-2
Status:         Failed
Reason:         Evicted
Message:        {0}
"""
STEPS = "INFO:tensorflow:loss = 0.4, step = 100 (1.2 sec)\nINFO:tensorflow:loss = 0.3, step = 200 (1.2 sec)\n"
POLLED = (
    "WARNING:tensorflow:TPUPollingThread found TPU b'tpu-1' in state {0}, and health HEALTHY.\n"
)


def findings(folder: Path, texts: Mapping[str, str]) -> tuple[Finding, ...]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return diagnose_paths([folder / name for name in texts], load_catalogue()).findings


def test_who_was_killed_comes_before_who_lost_it(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, {"worker-3.log": LOST, "ps-0.log": "started\nKilled\n"})
    assert finding.summary.startswith("ps 0 was ended by SIGKILL")
    assert [(w.job, w.index) for w in finding.who] == [("ps", 0)]


def test_who_aborts_after_its_loss_has_lost_it_all_the_same(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, {"worker-3.log": LOST + "Aborted (core dumped)\n"})
    assert "lost a member" in finding.summary


def test_an_exit_code_is_told_with_the_last_error(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, {"run.out": FATAL + EXITED})
    assert finding.summary.startswith(
        "worker 3 exited with code 1, after its log said: the license"
    )
    (finding,) = findings(tmp_path, {"run.out": "step 1\n" + EXITED})
    assert finding.summary == "worker 3 exited with code 1"


@pytest.mark.parametrize(
    ("why", "rule"),
    [
        ("The node was low on resource: memory.", "RES001"),
        ("The node was low on resource: ephemeral-storage.", "RES004"),
        ("Pod was rejected: node is shutting down", "EXIT001"),
    ],
)
def test_an_evicted_pod_is_named(tmp_path: Path, why: str, rule: str) -> None:
    (finding,) = findings(tmp_path, {"pod.txt": EVICTED.format(why)})
    assert finding.rule == rule and "lm-worker-2" in finding.fix


def test_a_tpu_that_is_taken_away_is_the_cause(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, {"fit.log": POLLED.format("PREEMPTED") + LOST})
    assert finding.rule == "EXIT010" and "tpu-1" in finding.fix
    assert not findings(tmp_path, {"fit.log": POLLED.format("READY") + STEPS})
    assert not findings(tmp_path, {"fit.log": POLLED.format("PREEMPTED") + STEPS})


def test_a_step_that_asks_for_too_much_is_compared_with_its_job(tmp_path: Path) -> None:
    refused = "srun: error: Unable to create step for job 7: Requested node configuration is not available\n"
    (finding,) = findings(tmp_path, {"slurm.out": refused})
    assert "scontrol show job" in finding.fix


RAISED = (
    'Traceback (most recent call last):\n  File "/w/fit.py", line 3, in load\n    open(path)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/vocab'\n"
)
FAILED = "##### Command execution on worker {0} failed with exit status 1. Continuing.\n"


def test_gclouds_line_names_the_worker_of_the_only_traceback(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, {"pod.log": RAISED + FAILED.format(3)})
    assert finding.rule == "EXIT002" and [w.rank for w in finding.who] == [3]


def test_of_two_workers_that_failed_none_is_blamed_for_one_traceback(tmp_path: Path) -> None:
    text = RAISED + FAILED.format(1) + FAILED.format(3)
    (finding,) = findings(tmp_path, {"pod.log": text})
    assert finding.rule == "EXIT002" and all(w.rank < 0 for w in finding.who)


BEAT = (
    "W0813 22:23:32.9 1402 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1267] The node "
    "'n7_18_0' has failed to send a keep-alive heartbeat to the rendezvous 'r1' due to an error of type "
    "RendezvousConnectionError.\n"
)


def test_a_torchrun_that_has_lost_its_rendezvous_is_told_if_it_does_not_find_it_again(
    tmp_path: Path,
) -> None:
    (finding,) = findings(tmp_path, {"node7.log": BEAT * 3})
    assert (finding.rule, str(finding.severity)) == ("LOG002", "warning")
    assert "torchrun of node n7_18_0 does not reach its rendezvous" in finding.summary
    assert not findings(tmp_path, {"node7.log": BEAT + STEPS})


def test_a_slot_that_horovod_names_is_on_its_host(tmp_path: Path) -> None:
    said = "The first process to do so was:\nProcess name: worker-1[0]\nExit code: 139\n"
    (finding,) = findings(tmp_path, {"run.out": said})
    assert finding.rule == "EXIT001" and finding.who[0].host == "worker-1"


def test_an_end_of_a_pod_without_a_name_is_told(tmp_path: Path) -> None:
    state = "State:          Terminated\n  Reason:       {0}\n  Exit Code:    {1}\n"
    (finding,) = findings(tmp_path, {"pod.txt": state.format("Error", 1)})
    assert finding.rule == "EXIT003" and finding.summary.startswith("a pod fails (Error")
    assert not findings(tmp_path, {"pod.txt": state.format("Completed", 0)})


def test_a_pod_whose_image_kubernetes_does_not_get_was_never_started(tmp_path: Path) -> None:
    described = (
        "Name:           ps-0\nStatus:         Pending\nContainers:\n  ps:\n    Image:          lab/ps:97\n"
        "    State:          Waiting\n      Reason:       {0}\n    Ready:          False\n"
    )
    (finding,) = findings(tmp_path, {"pod.txt": described.format("ImagePullBackOff")})
    assert finding.rule == "JOIN001"
    assert "ps-0 was never started: Kubernetes does not get its image lab/ps:97" in finding.summary
    assert not findings(tmp_path, {"pod.txt": described.format("ContainerCreating")})
