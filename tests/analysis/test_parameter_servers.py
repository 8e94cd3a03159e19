"""Who serves, who trains, and who waits for whom in a job with parameter servers."""

from __future__ import annotations

import pytest

from allaboard.analysis.member_names import names
from allaboard.analysis.parameter_servers.parameter_servers import (
    TF2_CHIEF,
    awaited_by_servers,
    in_use,
    left_over,
    lost,
    of_chief,
    serves,
    wait_for_peers,
)
from allaboard.facts import Exit, JobView, Pair, Phase
from allaboard.facts.samples import SERVING, declared, job, member, task

DONE = Exit(at=90.0, code=0)
DEAD = Exit(at=90.0, signal=9)
SYNC = {"notes": {"synchronous": "2 of 2"}}


@pytest.mark.parametrize(
    ("view", "awaited", "over"),
    [
        (job(task("worker", 0, exit=DONE), task("worker", 1), task("ps", 0)), "worker 1", False),
        (
            job(task("worker", 0, exit=DONE), task("worker", 1, exit=DONE), task("ps", 0)),
            "",
            True,
        ),
        (job(task("worker", 0, exit=DEAD), task("worker", 1), task("ps", 0)), "", False),
        (job(task("worker", 0), task("ps", 0, exit=DONE)), "", False),
        (job(member(0), member(1)), "", False),
        (
            job(
                task("chief", 0, number=3, exit=DONE), task("worker", 0, op=SERVING), task("ps", 0)
            ),
            "",
            True,
        ),
        (
            job(task("worker", 0, exit=DONE), task("evaluator", 0, number=9), task("ps", 0)),
            "evaluator 0",
            True,
        ),
    ],
    ids=[
        "one is at it",
        "all done",
        "one failed",
        "nobody serves",
        "no servers",
        "TF2's chief",
        "evaluated",
    ],
)
def test_servers_are_ended_when_all_who_train_are_done(
    view: JobView, awaited: str, over: bool
) -> None:
    assert names(awaited_by_servers(view)) == awaited
    assert bool(left_over(view)) is over


def test_a_server_that_was_replaced_is_not_lost() -> None:
    old = task("ps", 0, exit=DEAD, phase_since=10.0)
    new = task("ps", 0, number=9, phase_since=92.0)
    assert lost(job(task("worker", 0), old))
    assert lost(job(task("worker", 0), task("ps", 0, os_state="T")))
    assert not lost(job(task("worker", 0), old, new))
    assert not lost(job(member(0), member(1, exit=DEAD)))


def test_workers_wait_for_each_other_only_in_a_synchronous_job() -> None:
    assert wait_for_peers(job(member(0), member(1)))
    assert not wait_for_peers(job(task("worker", 0), task("worker", 1), task("ps", 0)))
    assert wait_for_peers(job(task("worker", 0, **SYNC), task("worker", 1), task("ps", 0)))


def test_a_server_is_in_use_while_bytes_pass() -> None:
    still = Pair(task="worker:1", connections=2, received_all=900, sent_all=900)
    moves = Pair(task="worker:1", connections=2, received=10.0)
    assert in_use(job(task("ps", 0, pairs=(still, moves))))
    assert not in_use(job(task("ps", 0, pairs=(still,))))
    assert not in_use(job(task("ps", 0)))
    assert not in_use(job(task("ps", 0, pairs=(moves,), exit=DEAD)))
    assert not in_use(job(task("ps", 0), task("worker", 1, pairs=(moves,))))


def test_who_was_interrupted_keeps_no_server_alive() -> None:
    done = task("worker", 0, exit=Exit(at=90.0, code=0))
    gone = task("worker", 1, exit=Exit(at=80.0, signal=15, ours=True), interrupted=79.9)
    serving = task("ps", 0)
    assert left_over(job(done, gone, serving)) == (serving,)
    killed = task("worker", 1, exit=Exit(at=80.0, signal=9))
    assert left_over(job(done, killed, serving)) == ()
    assert left_over(job(gone, serving)) == ()


def test_a_worker_of_a_chief_serves_wherever_it_waits() -> None:
    """Some wait in a loop of their own instead of Server.join."""
    chief_told = declared(0, 4, call=TF2_CHIEF, job="chief")
    head = task("chief", 0, number=3, declared=chief_told)
    idle = {"op": None, "step": 0, "phase": Phase.JOINED}
    members = of_chief((task("worker", 0, **idle), task("worker", 1, **idle), task("ps", 0), head))
    assert [m.who.name for m in members if serves(m)] == ["worker 0", "worker 1", "ps 0"]
    of_tf1 = (task("worker", 0, **idle), task("ps", 0))
    assert of_chief(of_tf1) is of_tf1
    trains = of_chief((task("worker", 0), head))[0]
    assert not serves(trains)
