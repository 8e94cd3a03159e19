"""TensorFlow 1 tasks whose addresses stand in the script: the command lines name them."""

from __future__ import annotations

import pytest

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.diagnosis.live.unranked_names import task_by_words
from allaboard.facts import Frame, HostLook, Member, Phase, Present, Stack, Who

OWN = Frame("/home/u/train.py", 18, "main", "with MonitoredTrainingSession(server.target) as s:")
OPENS = Frame("/site-packages/tensorflow/python/client/session.py", 700, "_extend_graph")
SERVES = Frame("/site-packages/tensorflow/python/training/server_lib.py", 10, "join")
SLEEPS = Frame("/home/u/train.py", 9, "main", "time.sleep(600)")


def task(pid: int, words: str, *frames: Frame, framework: str = "tensorflow") -> Present:
    member = Member(
        who=Who(index=-1, rank=-1, host="h", pid=pid),
        worker=pid,
        key=pid,
        framework=framework,
        phase=Phase.TRAINING,
        stack=Stack(frames=(*frames, OWN), taken_at=10.0, samples=5, span=2.0),
    )
    return Present(member=member, command=("python", "train.py", *words.split()))


def look(*present: Present) -> HostLook:
    return HostLook(host="h", now=12.0, present=present)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("ps 0 a:1,b:2", ("ps", 0)),
        ("--fast worker 12", ("worker", 12)),
        ("worker", None),
        ("worker a", None),
        ("worker 0 worker 1", None),
        ("workers 4", None),
        ("--mode worker -1", None),
    ],
)
def test_a_job_and_a_number_name_a_task(words: str, meant: tuple[str, int] | None) -> None:
    assert task_by_words(words.split()) == meant


def test_a_session_that_does_not_open_is_said_to_wait_and_who_is_not_here() -> None:
    answer = diagnose_processes([look(task(1, "ps 0 A", SERVES), task(2, "worker 1 A", OPENS))])
    assert not answer.findings
    assert answer.conclusion.startswith(
        "waiting: worker 1 waits for a session (train.py:18 in main): it needs every task of the cluster"
    )
    assert answer.missing == ("worker 0: no process of it was found here",)
    assert [line.partition(":")[0] for line in answer.told] == [
        "ps 0 (h, pid 1)",
        "worker 1 (h, pid 2)",
    ]


def test_a_task_that_has_loaded_other_frameworks_beside_tensorflow_is_named() -> None:
    present = task(1, "ps 0 A", SERVES, framework=""), task(2, "worker 0 A", OPENS, framework="")
    told = diagnose_processes([look(*present)]).told
    assert [line.partition(":")[0] for line in told] == ["ps 0 (h, pid 1)", "worker 0 (h, pid 2)"]


def test_two_sessions_do_not_wait_for_each_other() -> None:
    answer = diagnose_processes([look(task(1, "worker 0", OPENS), task(2, "worker 1", OPENS))])
    assert not answer.findings
    assert answer.conclusion.startswith("waiting: worker 0, worker 1 wait for a session")


def test_a_task_that_sleeps_before_its_session_is_waited_for() -> None:
    answer = diagnose_processes([look(task(1, "ps 0 A", SLEEPS), task(2, "worker 0 A", OPENS))])
    assert answer.conclusion.startswith("waiting: worker 0 waits for ps 0, which stands still")
    assert "train.py:9 in main" in answer.conclusion and "asleep" in answer.conclusion


def test_words_of_another_framework_are_no_task() -> None:
    present = (
        task(1, "ps 0", SLEEPS, framework="torch"),
        task(2, "worker 1", OPENS, framework="torch"),
    )
    assert all("pid" in line.split()[0] for line in diagnose_processes([look(*present)]).told)
