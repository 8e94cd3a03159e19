"""Who serves, who trains, and who waits for whom in a job with parameter servers."""

from __future__ import annotations

import pytest

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers.task_roles import (
    TF2_CHIEF_CALL,
    are_servers_in_use,
    awaited_by_servers,
    has_lost_server,
    leftover_members,
    mark_workers_of_chief,
    nobody_trains,
    only_serves,
    workers_wait_for_peers,
)
from allaboard.facts import Exit, JobView, Pair, Phase
from allaboard.facts.samples import (
    SERVING,
    ps_member,
    sample_declaration,
    sample_job,
    sample_member,
)

DONE = Exit(ended_at=90.0, code=0)
DEAD = Exit(ended_at=90.0, signal=9)
SYNC = {"notes": {"synchronous": "2 of 2"}}


@pytest.mark.parametrize(
    ("view", "awaited", "over"),
    [
        (
            sample_job(
                ps_member("worker", 0, exit=DONE), ps_member("worker", 1), ps_member("ps", 0)
            ),
            "worker 1",
            False,
        ),
        (
            sample_job(
                ps_member("worker", 0, exit=DONE),
                ps_member("worker", 1, exit=DONE),
                ps_member("ps", 0),
            ),
            "",
            True,
        ),
        (
            sample_job(
                ps_member("worker", 0, exit=DEAD), ps_member("worker", 1), ps_member("ps", 0)
            ),
            "",
            False,
        ),
        (sample_job(ps_member("worker", 0), ps_member("ps", 0, exit=DONE)), "", False),
        (sample_job(sample_member(0), sample_member(1)), "", False),
        (
            sample_job(
                ps_member("chief", 0, number=3, exit=DONE),
                ps_member("worker", 0, op=SERVING),
                ps_member("ps", 0),
            ),
            "",
            True,
        ),
        (
            sample_job(
                ps_member("worker", 0, exit=DONE),
                ps_member("evaluator", 0, number=9),
                ps_member("ps", 0),
            ),
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
    assert name_members(awaited_by_servers(view)) == awaited
    assert bool(leftover_members(view)) is over


def test_a_server_that_was_replaced_is_not_lost() -> None:
    old = ps_member("ps", 0, exit=DEAD, phase_since=10.0)
    new = ps_member("ps", 0, number=9, phase_since=92.0)
    assert has_lost_server(sample_job(ps_member("worker", 0), old))
    assert has_lost_server(sample_job(ps_member("worker", 0), ps_member("ps", 0, os_state="T")))
    assert not has_lost_server(sample_job(ps_member("worker", 0), old, new))
    assert not has_lost_server(sample_job(sample_member(0), sample_member(1, exit=DEAD)))


def test_workers_wait_for_each_other_only_in_a_synchronous_job() -> None:
    assert workers_wait_for_peers(sample_job(sample_member(0), sample_member(1)))
    assert not workers_wait_for_peers(
        sample_job(ps_member("worker", 0), ps_member("worker", 1), ps_member("ps", 0))
    )
    assert workers_wait_for_peers(
        sample_job(ps_member("worker", 0, **SYNC), ps_member("worker", 1), ps_member("ps", 0))
    )


def test_a_server_is_in_use_while_bytes_pass() -> None:
    still = Pair(task="worker:1", connections=2, received_all=900, sent_all=900)
    moves = Pair(task="worker:1", connections=2, received=10.0)
    assert are_servers_in_use(sample_job(ps_member("ps", 0, pairs=(still, moves))))
    assert not are_servers_in_use(sample_job(ps_member("ps", 0, pairs=(still,))))
    assert not are_servers_in_use(sample_job(ps_member("ps", 0)))
    assert not are_servers_in_use(sample_job(ps_member("ps", 0, pairs=(moves,), exit=DEAD)))
    assert not are_servers_in_use(
        sample_job(ps_member("ps", 0), ps_member("worker", 1, pairs=(moves,)))
    )


def test_who_was_interrupted_keeps_no_server_alive() -> None:
    done = ps_member("worker", 0, exit=Exit(ended_at=90.0, code=0))
    gone = ps_member("worker", 1, exit=Exit(ended_at=80.0, signal=15, ours=True), interrupted=79.9)
    serving = ps_member("ps", 0)
    assert leftover_members(sample_job(done, gone, serving)) == (serving,)
    killed = ps_member("worker", 1, exit=Exit(ended_at=80.0, signal=9))
    assert leftover_members(sample_job(done, killed, serving)) == ()
    assert leftover_members(sample_job(gone, serving)) == ()


def test_a_worker_of_a_chief_serves_wherever_it_waits() -> None:
    """Some wait in a loop of their own instead of Server.join."""
    chief_told = sample_declaration(0, 4, call=TF2_CHIEF_CALL, job="chief")
    head = ps_member("chief", 0, number=3, declared=chief_told)
    idle = {"op": None, "step": 0, "phase": Phase.JOINED}
    members = mark_workers_of_chief(
        (ps_member("worker", 0, **idle), ps_member("worker", 1, **idle), ps_member("ps", 0), head)
    )
    assert [m.who.name for m in members if only_serves(m)] == ["worker 0", "worker 1", "ps 0"]
    of_tf1 = (ps_member("worker", 0, **idle), ps_member("ps", 0))
    assert mark_workers_of_chief(of_tf1) is of_tf1
    trains = mark_workers_of_chief((ps_member("worker", 0), head))[0]
    assert not only_serves(trains)


@pytest.mark.parametrize(
    "end", [None, Exit(ended_at=5.0), Exit(ended_at=5.0, code=3)], ids=["lives", "unseen", "failed"]
)
def test_a_child_without_a_part_keeps_no_server_alive(end: Exit | None) -> None:
    """`uname -p`, between vfork and exec, is one more Python with its parent's command line."""
    done = ps_member("worker", 0, exit=Exit(ended_at=90.0, code=0))
    child = ps_member("worker", 0, number=9, candidate=True, declared=None, exit=end)
    serving = ps_member("ps", 0)
    view = sample_job(done, child, serving)
    assert nobody_trains(view) and leftover_members(view) == (serving,)
    assert name_members(awaited_by_servers(view)) == ""
