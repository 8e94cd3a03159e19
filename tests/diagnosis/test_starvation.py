"""Processes that want a core and get none are not called still; what waits or spins is."""

from __future__ import annotations

import os

import pytest

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.diagnosis.live.starvation import is_starved
from allaboard.facts import Frame, HostLook, Member, Phase, Present, QueueTime, Stack, Who
from allaboard.hosts.thread_stats import queue_times

ALL_REDUCE = Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 2924, "all_reduce")
OWN = Frame("/home/u/train.py", 9, "main", "loss.backward()")
SUM = Frame("/home/u/train.py", 12, "label", "sum(range(200_000))")


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "starved"),
    [
        pytest.param(0.0, 0.0, False, id="it sleeps"),
        pytest.param(0.01, 0.05, False, id="it sleeps, and wakes for a moment"),
        pytest.param(2.0, 0.0, False, id="it computes"),
        pytest.param(0.02, 1.9, True, id="it wants a core and gets none"),
        pytest.param(0.2, 0.6, True, id="it gets a little"),
        pytest.param(0.9, 1.1, False, id="it shares a core, and has run for long enough"),
    ],
)
def test_who_is_starved(ran_s: float, waited_s: float, starved: bool) -> None:
    first = {7: QueueTime(5.0, 3.0), 8: QueueTime(1.0, 1.0)}
    last = {7: QueueTime(5.0 + ran_s, 3.0 + waited_s), 8: QueueTime(1.0, 1.0)}
    assert is_starved(first, last, 2.0) is starved


@pytest.mark.parametrize(
    ("runs", "ran_s", "starved"),
    [
        pytest.param(600, 0.01, False, id="it polls, and yields at once"),
        pytest.param(100, 0.1, True, id="it computes for a millisecond, and is put back"),
        pytest.param(5, 0.0001, True, id="it hardly got a core"),
    ],
)
def test_a_thread_that_polls_is_not_starved(runs: int, ran_s: float, starved: bool) -> None:
    first = {7: QueueTime(5.0, 3.0, 100)}
    assert is_starved(first, {7: QueueTime(5.0 + ran_s, 4.9, 100 + runs)}, 2.0) is starved


def test_threads_that_came_or_went_and_an_unreadable_process_prove_nothing() -> None:
    assert not is_starved({7: QueueTime(0.0, 0.0)}, {8: QueueTime(0.0, 9.0)}, 2.0)
    assert not is_starved({}, {}, 2.0)
    assert not is_starved({7: QueueTime(0.0, 0.0)}, {7: QueueTime(0.0, 9.0)}, 0.0)


def test_the_kernel_counts_the_threads_of_this_process() -> None:
    times = queue_times(os.getpid())
    assert times[os.getpid()].ran_s > 0
    assert queue_times(2**22 + 1) == {}


def answer(starved: bool) -> tuple[list[str], str]:
    """Return what is said of two ranks: one waits in a collective, the other is at its own line."""

    def rank(number: int, *frames: Frame, lacks_core: bool = False) -> Present:
        member = Member(
            who=Who(index=number, rank=number, host="h", pid=100 + number),
            worker=number,
            phase=Phase.TRAINING,
            stack=Stack(frames=(*frames, OWN), taken_at=10.0, samples=5, span=2.0),
        )
        variables = {"RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}
        return Present(member=member, variables=variables, starved=lacks_core)

    present = (rank(0, ALL_REDUCE), rank(1, SUM, lacks_core=starved))
    diagnosis = diagnose_processes([HostLook(host="h", now=12.0, present=present)])
    return [f.rule for f in diagnosis.findings], diagnosis.conclusion


def test_a_rank_at_one_line_is_stuck_unless_it_gets_no_core() -> None:
    rules, _ = answer(starved=False)
    assert rules == ["HANG002"]
    rules, conclusion = answer(starved=True)
    assert not rules
    assert "worker 1 wants to run and hardly gets a core of h" in conclusion
    assert conclusion.endswith("top -o %CPU")
