"""What a look costs grows with the number of ranks, and no faster: CPU time, as a ratio in one run."""

from __future__ import annotations

import time

from allaboard.analysis.collectives.group_deadlock import find_group_cycle
from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import GroupState, Member, Op, Phase
from allaboard.facts.samples import sample_declaration, waiting_member
from allaboard.protocol.events import ProcessSampled, WorkerLaunched
from allaboard.rules.engine.catalogue import load_catalogue
from cost_growth import assert_growth

LOOKS = 24
"""Twelve seconds: some evidence is not there before."""
FEW, MANY = 150, 1200
MOST = 2.5
"""Times the cost per rank at few ranks. A look that compares every rank with every other costs 8 times."""


def seconds_for(ranks: int) -> float:
    """Return the CPU time (s) of the cheapest look."""
    clock = FakeClock()
    job = JobState(
        JobSettings(launched=ranks, host="a"), clock.now, load_catalogue().entries, clock.utc
    )
    job.handle(
        clock.now,
        *(WorkerLaunched(worker=r, pid=100 + r, launched_at=clock.now) for r in range(ranks)),
    )
    told = [sample_declaration(r, ranks) for r in range(ranks)]
    costs = []
    for step in range(1, LOOKS + 1):
        clock.advance(0.5)
        seen = [_seen(r, step, clock.now, told[r]) for r in range(ranks)]
        began = time.process_time()
        job.handle(clock.now, *seen)
        costs.append(time.process_time() - began)
    return min(costs[-4:])


def _seen(rank: int, step: int, now: float, told: object) -> ProcessSampled:
    box = BoxReading(
        phase=int(Phase.TRAINING),
        phase_since=1.0,
        round=1,
        declared=told,  # type: ignore[arg-type]  # a Declared
        step=step,
        ops=3 * step,
        intervals=(0.1,) * 5,
    )
    return ProcessSampled(
        pid=100 + rank, worker=rank, sampled_at=now, state="S", cpu=now / 2, box=box
    )


def test_a_look_costs_each_rank_the_same() -> None:
    assert_growth(seconds_for, FEW, MANY, at_most=MOST * MANY / FEW)


def seconds_for_waiting(ranks: int) -> float:
    """Return the CPU time (s) to find that nobody waits for each other, each in one of two groups' calls."""
    jobs = tuple(_waits(r, ranks) for r in range(ranks))
    began = time.process_time()
    assert find_group_cycle(jobs) == ()
    return time.process_time() - began


def _waits(rank: int, ranks: int) -> Member:
    everybody = tuple(range(ranks))
    odd = rank % 2
    groups = (
        GroupState("0", 1, 21, 90.0, ranks, everybody),
        GroupState("1", 1, 20 + odd, 90.0, ranks, everybody),
    )
    return waiting_member(rank, op=Op("all_reduce", 41, 90.0, str(odd), 21), groups=groups)


def test_finding_two_that_wait_for_each_other_costs_each_rank_the_same() -> None:
    assert_growth(seconds_for_waiting, FEW, MANY, at_most=MOST * MANY / FEW)
