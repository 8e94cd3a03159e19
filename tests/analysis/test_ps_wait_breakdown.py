"""Where the time of those who train with parameter servers goes."""

from __future__ import annotations

import pytest

from allaboard.analysis.parameter_servers.ps_wait_breakdown import split, under_way, used
from allaboard.facts import Exit, JobView, Load, Member, Pair
from allaboard.facts.samples import SERVING, job, task

SYNC = {"notes": {"synchronous": "2 of 2"}}


def load(inside: float, cpu: float, allowed: float = 8.0) -> Load:
    return Load(span=10.0, inside=inside, cpu=cpu, allowed=allowed)


def shares(view: JobView, one: Member) -> tuple[float, ...]:
    found = split(view, one)
    assert found is not None
    assert found.own + found.computing + found.servers + found.workers == pytest.approx(1.0)
    return tuple(round(s, 2) for s in (found.own, found.computing, found.servers, found.workers))


def test_an_asynchronous_worker_waits_for_servers_alone() -> None:
    one = task("worker", 0, load=load(0.9, 0.2))
    view = job(one, task("worker", 1), task("ps", 0, load=load(0, 0.1)))
    assert shares(view, one) == (0.1, 0.2, 0.7, 0.0)


def test_a_synchronous_one_for_workers_where_neither_server_nor_link_is_busy() -> None:
    one = task("worker", 0, load=load(0.9, 0.2), **SYNC)
    idle = job(one, task("ps", 0, load=load(0, 0.4)))
    busy = job(one, task("ps", 0, load=load(0, 0.95, allowed=1)))
    link = task("worker", 0, load=load(0.9, 0.2), pairs=(Pair(task="ps:0", busy=0.8),), **SYNC)
    assert shares(idle, one) == (0.1, 0.2, 0.05, 0.65)
    assert shares(busy, one) == (0.1, 0.2, 0.7, 0.0)
    assert shares(job(link, task("ps", 0)), link) == (0.1, 0.2, 0.7, 0.0)


def test_the_wait_for_the_chief_is_none_for_a_server() -> None:
    one = task("worker", 0, load=Load(span=10.0, inside=0.9, cpu=0.2, allowed=8.0, chief=0.5))
    found = split(job(one, task("ps", 0)), one)
    assert found is not None
    assert (found.chief, round(found.servers, 2), found.computing) == (0.5, 0.2, 0.2)


def test_the_server_that_is_stopped_or_gone_is_the_one_that_is_waited_for() -> None:
    busy = task("ps", 0, load=load(0, 0.3, allowed=1))
    halted = task("ps", 1, load=Load(span=10.0, allowed=1, stopped=0.9))
    gone = task("ps", 1, exit=Exit(at=93.0, signal=9))
    ours = task("ps", 1, exit=Exit(at=93.0, signal=15, ours=True))
    again = task("ps", 1, number=9)
    for others, most in (
        ((halted,), "ps:1"), ((gone,), "ps:1"), ((ours,), "ps:0"), ((gone, again), "ps:0"),
    ):  # fmt: skip
        one = task("worker", 0, load=load(0.9, 0.2))
        found = split(job(one, busy, *others), one)
        assert found is not None and found.most == most


def test_many_cores_do_not_compute_more_than_all_the_time() -> None:
    one = task("worker", 0, load=load(0.9, 6.0))
    assert shares(job(one, task("ps", 0)), one) == (0.1, 0.9, 0.0, 0.0)


def test_the_chief_of_tensorflow_2_waits_for_workers_and_they_for_servers() -> None:
    chief = task("chief", 0, number=3, load=load(0.95, 0.05))
    worker = task("worker", 0, op=SERVING, load=load(1.0, 0.3))
    ps = task("ps", 0, load=load(0, 0.5, allowed=1))
    view = job(chief, worker, ps)
    assert shares(view, chief) == (0.05, 0.05, 0.0, 0.9)
    assert shares(view, worker) == (0.0, 0.3, 0.5, 0.2)


@pytest.mark.parametrize("one", [task("ps", 0, load=load(1, 1)), task("worker", 0)])
def test_nothing_is_said_of_servers_and_of_what_is_not_measured(one: Member) -> None:
    assert split(job(one), one) is None


def test_a_link_is_busy_in_either_direction() -> None:
    one = task("worker", 0, pairs=(Pair(task="ps:0", busy=0.1),))
    ps = task("ps", 0, pairs=(Pair(task="worker:0", busy=0.7),))
    assert under_way(job(one, ps), one, "ps:0") == 0.7
    assert under_way(job(one), one, "ps:0") == 0.1
    assert used(Load()) == 0.0
