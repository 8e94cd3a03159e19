"""Starts that do not complete, in the words of launchers and frameworks; and starts that do."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding
from allaboard.rules.engine.catalogue import load_catalogue

RANK = "initializing ddp: GLOBAL_RANK: {}, MEMBER: {}/{}\n"
CHANNELS = (
    "2021-02-04 10:40:31.601000: I tensorflow/core/distributed_runtime/rpc/grpc_channel.cc:301] Initialize "
    "GrpcChannelCache for job worker -> {{0 -> 10.0.0.1:8081, 1 -> {}}}\n"
)
SERVER = (
    "2021-02-04 10:40:31.602000: I tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc:411] Started "
    "server with target: grpc://{}\n"
)
COORDINATOR = (
    "I0101 10:00:00.1 44 coordination_service_agent.cc:304] Coordination service agent failed to register "
    "with the leader (attempt #{}, will try again after 9s, deadline is 2026-01-01, now is "
    "2026-01-01,total timeout is 5m). Error status: UNAVAILABLE: failed to connect to all addresses; "
    "last error: UNKNOWN: ipv4:10.0.0.1:1234: Failed to connect to remote host: connect: Connection "
    "refused (111)\n"
)
STUCK = (
    "2024-07-29 17:14:59.9: E external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for "
    "`initialize clique for rank 6; clique=devices=[0,1]; stream=0; run_id=7` for 10 seconds and may be "
    "stuck. Expected 2 threads to join the rendezvous, but not all of them arrived on time.\n"
)
SSH = "ssh: Could not resolve hostname node-{}: Name or service not known\n"
WAITS = {
    # name: files; the rule, whom it names, words of the summary
    "a rank of four came": (
        {"a": RANK.format(0, 1, 4)},
        "JOIN001",
        "worker 1, worker 2, worker 3",
        "1 of 4",
    ),
    "two hosts count from 0": (
        {"a": 2 * RANK.format(1, 2, 4) + 2 * RANK.format(0, 1, 4)},
        "JOIN005",
        "worker 0, worker 1",
        "rank 0, 1 of 4",
    ),
    "a server waits for the other": (
        {"a": CHANNELS.format("10.0.0.2:8081") + SERVER.format("10.0.0.1:8081")},
        "JOIN001",
        "worker 1",
        "worker 0 started and waits for worker 1",
    ),
    "its own address is localhost": (
        {"a": CHANNELS.format("localhost:8082") + SERVER.format("localhost:8082")},
        "JOIN001",
        "worker 0",
        "worker 1 started and waits for worker 0",
    ),
    "both servers wait": (
        {
            "worker0": CHANNELS.format("10.0.0.2:8082") + SERVER.format("10.0.0.1:8081"),
            "worker1": CHANNELS.format("10.0.0.2:8082") + SERVER.format("10.0.0.2:8082"),
        },
        "JOIN004",
        "",
        "wait for each other",
    ),
    "the coordinator is not there": ({"a": COORDINATOR.format(12)}, "NET002", "", "10.0.0.1:1234"),
    "a clique is not complete": ({"a": STUCK}, "LOG001", "", "initialize clique"),
    "two hosts have no name": (
        {
            "a": SSH.format(1)
            + SSH.format(2)
            + "ORTE was unable to reliably start one or more daemons.\n"
        },
        "JOIN001",
        "",
        "node-1, node-2",
    ),
}
STEP = "step 1 loss 2.1\n"
COMES = {
    "all ranks came": "".join(RANK.format(r, r + 1, 2) for r in (1, 0)),
    "all came and it trains": RANK.format(0, 1, 4) + "Epoch 0: 100% 9/9 [00:05, 9.1it/s]\n",
    "all are registered": RANK.format(0, 1, 4)
    + "All distributed processes registered. Starting with 4 processes\n",
    "a restart of a start that was complete": 2
    * ("".join(RANK.format(r, r + 1, 2) for r in (0, 1)) + "Epoch 0: 100% 9/9 [00:05, 9.1it/s]\n"),
    "a server that trains": CHANNELS.format("10.0.0.2:8081")
    + SERVER.format("10.0.0.1:8081")
    + STEP,
    "a parameter server": "Initialize GrpcChannelCache for job ps -> {0 -> localhost:2222}\n"
    + CHANNELS.format("10.0.0.2:2222")
    + SERVER.format("localhost:2222"),
    "a server alone": "Initialize GrpcChannelCache for job worker -> {0 -> 10.0.0.1:1}\n"
    + SERVER.format("10.0.0.1:1"),
    "the coordinator came late": COORDINATOR.format(12)
    + "I0101 10:00:10.1 44 agent.cc:340] Coordination agent has successfully connected.\n"
    + STEP,
    "few attempts so far": COORDINATOR.format(2),
    "a clique that came": STUCK
    + "2024-07-29 17:15:09: E rendezvous.cc:45] Thread is unstuck! Warning above was a false-positive.\n",
    "a clique that came in newer words": STUCK
    + "E0729 17:15:09.9 77 rendezvous.cc:43] This thread had been waiting for `initialize clique` for 12 "
    "seconds. It was unstuck.\n",
    "a script asks for two names": SSH.format(1) + SSH.format(2) + STEP,
}


def read(folder: Path, files: dict[str, str]) -> tuple[Finding, ...]:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    return diagnose_paths([folder / f"{name}.log" for name in files], load_catalogue()).findings


@pytest.mark.parametrize("name", WAITS)
def test_a_start_that_does_not_complete_names_who_is_missing(name: str, tmp_path: Path) -> None:
    files, rule, names, summary_part = WAITS[name]
    (finding,) = read(tmp_path, files)
    assert (finding.rule, ", ".join(w.name for w in finding.who)) == (rule, names)
    assert summary_part in finding.summary


@pytest.mark.parametrize("name", COMES)
def test_a_start_that_completes_says_nothing(name: str, tmp_path: Path) -> None:
    assert [f.summary for f in read(tmp_path, {"a": COMES[name]})] == []


def test_a_host_beyond_the_largest_number_is_a_spare(tmp_path: Path) -> None:
    traceback = (
        'Traceback (most recent call last):\n  File "/v/lib/torch/distributed/launcher/api.py", line 292, in '
        "launch_agent\n    if result.is_failed():\nAttributeError: 'NoneType' object has no attribute "
        "'is_failed'\n"
    )
    (finding,) = read(tmp_path, {"node4": traceback})
    assert finding.rule == "LOG013" and "--nnodes" in finding.fix


def test_the_user_s_own_object_without_a_result_is_no_spare(tmp_path: Path) -> None:
    traceback = (
        'Traceback (most recent call last):\n  File "/job/fit.py", line 9, in main\n    if job.is_done():\n'
        "AttributeError: 'NoneType' object has no attribute 'is_done'\n"
    )
    assert [f.rule for f in read(tmp_path, {"rank0": traceback})] == ["EXIT002"]
