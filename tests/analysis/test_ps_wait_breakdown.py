"""Where the time of those who train with parameter servers goes."""

from __future__ import annotations

import pytest

from allaboard.analysis.parameter_servers.ps_wait_breakdown import (
    break_down_time,
    cpu_share,
    transfer_share,
)
from allaboard.facts import Exit, JobView, Load, Member, Pair
from allaboard.facts.samples import SERVING, ps_member, sample_job

SYNC = {"notes": {"synchronous": "2 of 2"}}


def load(inside: float, cpu: float, allowed: float = 8.0) -> Load:
    return Load(span=10.0, operation_share=inside, cpu=cpu, allowed=allowed)


def shares(view: JobView, one: Member) -> tuple[float, ...]:
    found = break_down_time(view, one)
    assert found is not None
    assert (
        found.own_code + found.computing + found.waiting_for_servers + found.waiting_for_workers
        == pytest.approx(1.0)
    )
    return tuple(
        round(s, 2)
        for s in (
            found.own_code,
            found.computing,
            found.waiting_for_servers,
            found.waiting_for_workers,
        )
    )


def test_an_asynchronous_worker_waits_for_servers_alone() -> None:
    one = ps_member("worker", 0, load=load(0.9, 0.2))
    view = sample_job(one, ps_member("worker", 1), ps_member("ps", 0, load=load(0, 0.1)))
    assert shares(view, one) == (0.1, 0.2, 0.7, 0.0)


def test_a_synchronous_one_for_workers_where_neither_server_nor_link_is_busy() -> None:
    one = ps_member("worker", 0, load=load(0.9, 0.2), **SYNC)
    idle = sample_job(one, ps_member("ps", 0, load=load(0, 0.4)))
    busy = sample_job(one, ps_member("ps", 0, load=load(0, 0.95, allowed=1)))
    link = ps_member("worker", 0, load=load(0.9, 0.2), pairs=(Pair(task="ps:0", busy=0.8),), **SYNC)
    assert shares(idle, one) == (0.1, 0.2, 0.05, 0.65)
    assert shares(busy, one) == (0.1, 0.2, 0.7, 0.0)
    assert shares(sample_job(link, ps_member("ps", 0)), link) == (0.1, 0.2, 0.7, 0.0)


def test_the_wait_for_the_chief_is_none_for_a_server() -> None:
    one = ps_member(
        "worker", 0, load=Load(span=10.0, operation_share=0.9, cpu=0.2, allowed=8.0, chief=0.5)
    )
    found = break_down_time(sample_job(one, ps_member("ps", 0)), one)
    assert found is not None
    assert (found.waiting_for_chief, round(found.waiting_for_servers, 2), found.computing) == (
        0.5,
        0.2,
        0.2,
    )


def test_the_server_that_is_stopped_or_gone_is_the_one_that_is_waited_for() -> None:
    busy = ps_member("ps", 0, load=load(0, 0.3, allowed=1))
    halted = ps_member("ps", 1, load=Load(span=10.0, allowed=1, stopped=0.9))
    gone = ps_member("ps", 1, exit=Exit(ended_at=93.0, signal=9))
    ours = ps_member("ps", 1, exit=Exit(ended_at=93.0, signal=15, ours=True))
    again = ps_member("ps", 1, number=9)
    for others, most in (
        ((halted,), "ps:1"), ((gone,), "ps:1"), ((ours,), "ps:0"), ((gone, again), "ps:0"),
    ):  # fmt: skip
        one = ps_member("worker", 0, load=load(0.9, 0.2))
        found = break_down_time(sample_job(one, busy, *others), one)
        assert found is not None and found.busiest_server == most


def test_many_cores_do_not_compute_more_than_all_the_time() -> None:
    one = ps_member("worker", 0, load=load(0.9, 6.0))
    assert shares(sample_job(one, ps_member("ps", 0)), one) == (0.1, 0.9, 0.0, 0.0)


def test_the_chief_of_tensorflow_2_waits_for_workers_and_they_for_servers() -> None:
    chief = ps_member("chief", 0, number=3, load=load(0.95, 0.05))
    worker = ps_member("worker", 0, op=SERVING, load=load(1.0, 0.3))
    ps = ps_member("ps", 0, load=load(0, 0.5, allowed=1))
    view = sample_job(chief, worker, ps)
    assert shares(view, chief) == (0.05, 0.05, 0.0, 0.9)
    assert shares(view, worker) == (0.0, 0.3, 0.5, 0.2)


@pytest.mark.parametrize("one", [ps_member("ps", 0, load=load(1, 1)), ps_member("worker", 0)])
def test_nothing_is_said_of_servers_and_of_what_is_not_measured(one: Member) -> None:
    assert break_down_time(sample_job(one), one) is None


def test_a_link_is_busy_in_either_direction() -> None:
    one = ps_member("worker", 0, pairs=(Pair(task="ps:0", busy=0.1),))
    ps = ps_member("ps", 0, pairs=(Pair(task="worker:0", busy=0.7),))
    assert transfer_share(sample_job(one, ps), one, "ps:0") == 0.7
    assert transfer_share(sample_job(one), one, "ps:0") == 0.1
    assert cpu_share(Load()) == 0.0
