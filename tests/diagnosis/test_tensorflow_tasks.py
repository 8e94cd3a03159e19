"""Tasks of a TensorFlow cluster, by who listens at their addresses."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.facts import Diagnosis, Frame, HostLook, Member, Phase, Present, Socket, Stack, Who

TF = "/site-packages/tensorflow/python"
SERVES = Frame(f"{TF}/training/server_lib.py", 1, "join")
CONNECTS = Frame(f"{TF}/eager/context.py", 1, "ensure_initialized")
OPENS = Frame(f"{TF}/client/session.py", 1, "_extend_graph")
RUNS = Frame(f"{TF}/client/session.py", 1, "_call_tf_sessionrun")
OWN = Frame("/home/u/train.py", 9, "main", "load()")
CLUSTER = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]}
PORTS = {"chief:0": "1", "worker:0": "2", "worker:1": "3", "ps:0": "4"}


def task(
    name: str,
    *frames: Frame,
    listens: bool = True,
    cluster: dict[str, list[str]] | None = None,
    sockets: tuple[Socket, ...] = (),
    moving: bool = False,
    **changes: Any,
) -> Present:
    job, _, index = name.partition(":")
    config = {"cluster": cluster or CLUSTER, "task": {"type": job, "index": int(index)}}
    number = list(PORTS).index(name) if name in PORTS else 9
    stack = Stack(frames=(*frames, OWN), taken_at=10.0, samples=5, span=2.0, moving=moving)
    port = PORTS.get(name, "9")
    own = (Socket(f"[::]:{port}", "[::]:0", "LISTEN"),) if listens else ()
    member = Member(
        who=Who(index=number, rank=number, host="h", pid=100 + number),
        worker=number,
        phase=Phase.TRAINING,
        stack=stack,
    )
    return Present(
        member=msgspec.structs.replace(member, **changes),
        variables={"TF_CONFIG": json.dumps(config)},
        command=("python", "train.py"),
        sockets=own + sockets,
    )


def diagnosed(
    *present: Present, also_listening: tuple[str, ...] = (), own: bool = True
) -> Diagnosis:
    listeners = {s.local for p in present for s in p.sockets if s.state == "LISTEN"}
    look = HostLook(
        host="h",
        now=12.0,
        present=present,
        listeners=(*listeners, *(f"[::]:{port}" for port in also_listening)),
        addresses=("127.0.0.1", "h") if own else ("127.0.0.1",),
    )
    return diagnose_processes([look])


def absent(answer: Diagnosis) -> list[str]:
    return [w.name for f in answer.findings for w in f.who]


SERVERS = (task("worker:0", SERVES), task("worker:1", SERVES), task("ps:0", SERVES))


def test_a_server_at_whose_address_nothing_listens_has_not_come() -> None:
    answer = diagnosed(task("chief:0", CONNECTS), *SERVERS[:2])
    (one,) = answer.findings
    assert one.rule == "JOIN001" and absent(answer) == ["ps 0"] and one.certainty == "likely"
    assert one.evidence[0].observed == "nothing listens at h:4 of ps 0 on h"
    assert '"task": {"type": "ps", "index": 0}' in one.fix and one.fix.endswith("python train.py")


def test_a_task_that_listens_is_never_missing_though_nobody_examined_it() -> None:
    assert not diagnosed(task("chief:0", CONNECTS), *SERVERS[:2], also_listening=("4",)).findings
    both = diagnosed(task("chief:0", CONNECTS), SERVERS[0], also_listening=("4",))
    assert absent(both) == ["worker 1"]


def test_the_chief_that_nobody_started() -> None:
    answer = diagnosed(*SERVERS)
    assert absent(answer) == ["chief 0"]


def test_servers_whose_chief_is_there_wait_for_nobody() -> None:
    assert not diagnosed(*SERVERS, also_listening=("1",)).findings
    trains = task("chief:0", RUNS, moving=True, cpu=0.8)
    assert not diagnosed(trains, *SERVERS).findings


@pytest.mark.parametrize(
    "busy",
    [{"moving": True}, {"cpu": 0.7}, {"traffic": 1e6}],
    ids=["other lines", "computes", "data"],
)
def test_who_trains_without_a_task_does_not_wait_for_it(busy: dict[str, Any]) -> None:
    assert not diagnosed(task("worker:0", RUNS, **busy), task("ps:0", SERVES)).findings


def test_a_session_that_waits_for_another_worker() -> None:
    two = {"worker": ["h:2", "h:3"], "ps": ["h:4"]}
    answer = diagnosed(task("worker:0", OPENS, cluster=two), task("ps:0", SERVES, cluster=two))
    assert absent(answer) == ["worker 1"]
    told = answer.findings[0].summary + answer.findings[0].fix
    assert "collective" not in told and "shape" not in told


def test_a_task_that_lives_and_has_not_opened_its_port_is_late_not_missing() -> None:
    asleep = task("ps:0", listens=False, os_state_since=1.0)
    answer = diagnosed(task("chief:0", CONNECTS), *SERVERS[:2], asleep)
    assert [f.rule for f in answer.findings] == ["JOIN002"] and absent(answer) == ["ps 0"]


def test_nobody_waits_for_an_evaluator() -> None:
    evaluator = task("evaluator:0", listens=False)
    answer = diagnosed(task("chief:0", CONNECTS), *SERVERS, evaluator)
    assert not any(w.job == "evaluator" for f in answer.findings for w in f.who)
    assert any(line.startswith("evaluator 0") for line in answer.told)
    assert not any(crowd.others for crowd in answer.crowds), "it is at no place of the job"


def test_a_task_of_another_host_is_missing_only_if_it_does_not_answer() -> None:
    far = {**CLUSTER, "ps": ["10.9.9.9:4"]}
    present = (
        task("chief:0", CONNECTS, cluster=far),
        task("worker:0", SERVES, cluster=far),
        task("worker:1", SERVES, cluster=far),
    )
    unseen = diagnosed(*present)
    assert not unseen.findings and "ps 0 (10.9.9.9:4)" in unseen.missing[0]
    silent = task(
        "chief:0", CONNECTS, cluster=far,
        sockets=(Socket("10.0.0.1:51000", "10.9.9.9:4", "SYN-SENT"),),
    )  # fmt: skip
    answer = diagnosed(silent, *present[1:])
    assert absent(answer) == ["ps 0"]
    assert "does not answer (SYN-SENT)" in answer.findings[0].evidence[0].observed
    connected = task(
        "chief:0", CONNECTS, cluster=far,
        sockets=(Socket("10.0.0.1:51000", "10.9.9.9:4", "ESTAB"),),
    )  # fmt: skip
    assert not diagnosed(connected, *present[1:]).findings


def test_the_host_of_a_listening_task_is_this_one_whatever_it_is_called() -> None:
    cluster = {"worker": ["trainer-a:2", "trainer-a:3"], "ps": ["trainer-b:4"]}
    answer = diagnosed(task("worker:0", CONNECTS, cluster=cluster), own=False)
    assert absent(answer) == ["worker 1"] and "ps 0 (trainer-b:4)" in answer.missing[0]


def test_a_script_that_sets_tf_config_itself_is_not_told_to_be_given_it() -> None:
    chief = msgspec.structs.replace(task("chief:0", CONNECTS), set_by_program=("TF_CONFIG",))
    (one,) = diagnosed(chief, *SERVERS[:2]).findings
    assert one.fix == "start ps 0 on its host, as the others were started"


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_cluster_of_which_the_program_knows_nothing_calls_no_task_late(framework: str) -> None:
    waits = Frame("/site-packages/torch/distributed/distributed_c10d.py", 1, "all_reduce")
    sleeping = Frame("/home/u/train.py", 3, "<module>", "time.sleep(25)")
    cluster = {"worker": ["h:2", "h:3"]}
    answer = diagnosed(
        task("worker:0", waits, listens=False, cluster=cluster, framework=framework),
        task("worker:1", sleeping, listens=False, cluster=cluster, framework=framework),
    )
    assert not [f.rule for f in answer.findings if f.rule.startswith("JOIN")]


def test_a_worker_that_trained_with_the_others_has_ended() -> None:
    two = {"worker": ["h:2", "h:3"]}
    step = Frame(f"{TF}/eager/execute.py", 53, "quick_execute")
    (ended,) = diagnosed(task("worker:0", step, cluster=two)).findings
    assert ended.summary == "worker 1 has ended, while the others train and wait for it"
    assert "its traceback" in ended.fix and '"index": 1' in ended.fix
    (starts,) = diagnosed(task("worker:0", CONNECTS, cluster=two)).findings
    assert "has not joined" in starts.summary and starts.fix.startswith("start worker 1")


def test_a_worker_at_its_end_has_no_stack_and_is_not_late() -> None:
    two = {"worker": ["h:2", "h:3"]}
    step = task("worker:0", Frame(f"{TF}/eager/execute.py", 53, "quick_execute"), cluster=two)
    ending = task("worker:1", cluster=two, listens=False)
    member = msgspec.structs.replace(ending.member, stack=None, cpu=0.2)
    answer = diagnosed(step, msgspec.structs.replace(ending, member=member))
    assert not any(f.rule == "JOIN002" for f in answer.findings)


@pytest.mark.parametrize(("framework", "is_known"), [("tensorflow", True), ("", False)])
def test_a_worker_that_runs_no_python_any_more_is_named(framework: str, is_known: bool) -> None:
    two = {"worker": ["h:2", "h:3"]}
    step = task("worker:0", Frame(f"{TF}/eager/execute.py", 53, "quick_execute"), cluster=two)
    ending = task("worker:1", cluster=two, listens=False)
    member = msgspec.structs.replace(ending.member, stack=None, framework=framework)
    unread = msgspec.structs.replace(ending, member=member, why="py-spy: no Python frames")
    answer = diagnosed(step, unread)
    named = "worker 1 has no Python code left to run, and worker 0 waits at train.py:9 in main"
    assert (named in answer.conclusion) is is_known


COORDINATOR = Frame(f"{TF}/distribute/coordinator/cluster_coordinator.py", 540, "wait")
JOINS = (Frame("/usr/lib/python3.11/threading.py", 327, "wait"), COORDINATOR)
WATCHES = Frame("/home/u/train.py", 24, "watch", "time.sleep(3)")
TO_WORKER_0 = (Socket("h:40000", "h:2", "ESTAB"),)


def test_a_task_whose_server_is_gone_is_told_though_the_chief_goes_on() -> None:
    chief = task("chief:0", *JOINS, moving=True, cpu=0.3, sockets=TO_WORKER_0)
    others = (SERVERS[0], SERVERS[2])
    (finding,) = diagnosed(chief, task("worker:1", WATCHES, listens=False), *others).findings
    assert finding.rule == "HANG033" and [w.name for w in finding.who] == ["worker 1"]
    assert "nothing listens at h:3" in finding.summary
    in_child = diagnosed(
        chief, task("worker:1", WATCHES, listens=False), *others, also_listening=("3",)
    )
    assert not in_child.findings, "its server runs in a process of its own"
    assert "wait for worker 1" not in in_child.conclusion, "servers wait for none but the chief"


def test_a_task_that_has_yet_to_start_its_server_is_on_its_way() -> None:
    chief = task("chief:0", moving=True, cpu=0.3)
    assert not diagnosed(chief, task("worker:1", WATCHES, listens=False), SERVERS[0]).findings


def test_a_chief_that_waits_for_handed_out_steps_is_not_idle() -> None:
    chief = task("chief:0", *JOINS, sockets=TO_WORKER_0)
    stopped = task("worker:1", SERVES, os_state="T", os_state_since=1.0)
    chief = msgspec.structs.replace(chief, blocked_s=40.0)
    answer = diagnosed(chief, SERVERS[0], stopped, SERVERS[2])
    assert [f.rule for f in answer.findings] == ["HANG001"]
    assert absent(answer) == ["worker 1"]
    assert not any(c.odd for c in answer.crowds), "nobody is at a place where he should not be"


def test_tasks_are_called_by_their_names() -> None:
    chief = task("chief:0", *JOINS, framework="tensorflow", sockets=TO_WORKER_0)
    servers = [
        msgspec.structs.replace(s, member=msgspec.structs.replace(s.member, framework="tensorflow"))
        for s in SERVERS
    ]
    crowds = {c.doing: c.tasks for c in diagnosed(chief, *servers).crowds}
    assert crowds["serving its peers"] == ("worker 0", "worker 1", "ps 0")
    only_workers = {"worker": ["h:2", "h:3"]}
    alike = diagnosed(*(task(f"worker:{i}", OPENS, cluster=only_workers) for i in range(2)))
    assert not any(c.tasks for c in alike.crowds), "their numbers are those of the ranks"


def test_a_worker_whose_peers_train_has_come_wherever_it_is() -> None:
    two = {"worker": ["h:2", "h:3"]}
    step = Frame(f"{TF}/eager/execute.py", 53, "quick_execute")
    ended = Frame("/usr/lib/python3.11/threading.py", 1590, "_shutdown")
    answer = diagnosed(
        task("worker:0", step, cluster=two), task("worker:1", ended, cluster=two, listens=False)
    )
    assert "JOIN002" not in [f.rule for f in answer.findings]


def test_nothing_tells_servers_alone_whether_their_chief_has_been_there() -> None:
    (finding,) = diagnosed(*SERVERS).findings
    assert (
        finding.summary
        == "chief 0 is not there, and the others only serve: they have nothing to do"
    )
    assert finding.fix.startswith(
        "see in the last output of chief 0 whether it has ended; else start chief 0"
    )
