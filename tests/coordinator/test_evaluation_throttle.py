"""How often a job of many hosts is looked at while they come: it does not grow with their number."""

from __future__ import annotations

import sys

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.cluster.transport.link_trial import LINK_FIGURES
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.coordinator.trackers.evaluation_throttle import (
    MEMBERS_PER_SECOND,
    THROTTLED_FROM_MEMBERS,
    EvaluationThrottle,
)
from allaboard.facts import Declared, Phase
from allaboard.protocol.commands import AnnounceFinding, Command, OpenGate, ProbeLinks
from allaboard.protocol.events import (
    AgentConnected,
    Event,
    LinksProbed,
    MemberFactsReported,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue

STREAM = 5_000
"""Hosts that come in a second, one by one."""
FEW, TIMES = 400, 4


class Coming:
    """A roll call of ``size`` hosts; ``looks`` were taken while they came."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.clock = FakeClock()
        settings = JobSettings(launched=1, host="h0", joined=True, rank=0, timeout=20.0)
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        now = self.clock.now
        self.take(
            RoleTaken(leads=True), WorkerLaunched(worker=0, pid=1, launched_at=now), *self.host(0)
        )

    @property
    def looks(self) -> int:
        return self.job.status.evaluations

    def host(self, rank: int) -> list[Event]:
        """What is heard of it when it comes."""
        told = Declared(framework="torch", call="init_process_group", rank=rank,
                        world_size=self.size, place="tcp://h0:29500", local=False)  # fmt: skip
        now, pid = self.clock.now, process_key(rank, 1)
        box = BoxReading(phase=Phase.ARRIVED, phase_since=now, round=1, declared=told)
        return [
            AgentConnected(
                agent=rank, host=f"h{rank}", probe_address=f"10.0.0.1:{rank}", rank=rank
            ),
            ProcessSampled(
                pid=pid, worker=0, sampled_at=now, state="S", cpu=0.0, box=box, host=f"h{rank}"
            ),
            MemberFactsReported(
                pid=pid, facts={"version python": "3.11.7", "data address": f"10.0.0.{rank}"}
            ),
        ]

    def take(self, *events: Event) -> list[Command]:
        return self.job.handle(self.clock.now, *events)

    def come(self, *ranks: int) -> list[Command]:
        said: list[Command] = []
        for rank in ranks:
            self.clock.advance(1 / STREAM)
            said += self.take(*self.host(rank))
        return said


def _looks_for_the_last(size: int) -> int:
    """Looks from the moment at which there are many."""
    coming = Coming(size)
    coming.come(*range(1, THROTTLED_FROM_MEMBERS))
    before = coming.looks
    coming.come(*range(THROTTLED_FROM_MEMBERS, size - 1))
    return coming.looks - before


def test_looks_do_not_grow_with_the_hosts_that_come() -> None:
    few, many = _looks_for_the_last(FEW), _looks_for_the_last(TIMES * FEW)
    assert few <= 8
    assert many <= few + 4


def test_the_last_one_is_not_kept_waiting() -> None:
    coming = Coming(FEW)
    said = coming.come(*range(1, FEW))
    assert not any(isinstance(c, OpenGate) for c in said)
    asked = [c for c in said if isinstance(c, ProbeLinks)]
    assert {c.agent for c in asked} == set(range(FEW)), "asked at once"
    for one in asked:
        works = LINK_FIGURES.pack(1e-4, 1e9) * len(one.targets)
        said = coming.take(LinksProbed(agent=one.agent, worked=works))
    assert sum(isinstance(c, OpenGate) for c in said) == FEW, "with the last answer"
    links = coming.job.status.view(coming.clock.now).links
    assert len(links) == sum(len(c.targets) for c in asked)
    assert all(k.works and k.source != k.target and k.address for k in links)


def test_the_timeout_does_not_wait_for_the_next_look() -> None:
    coming = Coming(FEW)
    coming.come(*range(1, FEW - 1))
    arrived = coming.clock.now
    own = coming.host(0)[1:2]
    coming.clock.advance(arrived + 19.99 - coming.clock.now)
    coming.take(*own)
    coming.clock.advance(0.02)
    said = coming.take(*own)
    (found,) = [c.finding for c in said if isinstance(c, AnnounceFinding)]
    assert found.rule == "JOIN001"
    assert f"rank {FEW - 1}" in found.summary


def _calls_by_host(size: int) -> float:
    """Calls of functions for each host, from the first one to the word that lets all through."""
    coming = Coming(size)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        said = coming.come(*range(1, size))
        for one in [c for c in said if isinstance(c, ProbeLinks)]:
            works = LINK_FIGURES.pack(1e-4, 1e9) * len(one.targets)
            said += coming.take(LinksProbed(agent=one.agent, worked=works))
    finally:
        sys.setprofile(None)
    assert sum(isinstance(c, OpenGate) for c in said) == size
    return calls / size


def test_a_roll_call_costs_each_host_the_same() -> None:
    few, many = _calls_by_host(FEW), _calls_by_host(4 * TIMES * FEW)
    assert many < 1.1 * few, f"{few:.0f} calls for each of {FEW} hosts, {many:.0f} of many"


def test_what_a_look_brought_about_needs_no_other() -> None:
    coming = Coming(FEW)
    coming.come(*range(1, FEW))
    before = coming.looks
    coming.take(*coming.host(0)[1:2])
    assert coming.looks == before, "it asked for the trials, and waits for what comes of them"


def test_few_are_looked_at_every_time() -> None:
    turns = EvaluationThrottle()
    assert all(turns.is_evaluation_due(0.0, THROTTLED_FROM_MEMBERS - 1, ()) for _ in range(5))
    assert turns.is_evaluation_due(0.0, MEMBERS_PER_SECOND, ("many",))
    assert not turns.is_evaluation_due(0.9, MEMBERS_PER_SECOND, ("many",))
    assert turns.is_evaluation_due(0.9, MEMBERS_PER_SECOND, ("another stage",))
    assert turns.is_evaluation_due(2.0, MEMBERS_PER_SECOND, ("another stage",))


def test_what_all_say_alike_is_kept_once() -> None:
    coming = Coming(4)
    cluster = {f"worker:{i}": f"h{i}:2222" for i in range(4)}
    for rank in range(4):
        told = Declared(framework="tensorflow", call="MWMS", rank=rank, world_size=4,
                        cluster=dict(cluster), place="".join(["tcp://", "h0:1"]))  # fmt: skip
        box = BoxReading(phase=Phase.ARRIVED, phase_since=coming.clock.now, round=1, declared=told)
        coming.take(
            ProcessSampled(
                pid=process_key(rank, 1),
                worker=0,
                sampled_at=coming.clock.now,
                state="S",
                cpu=0.0,
                box=box,
            )
        )
    members = coming.job.status.view(coming.clock.now).members
    told_by = [m.declared for m in members if m.declared is not None]
    assert len(told_by) == 4
    assert len({id(d.cluster) for d in told_by}) == 1
    assert len({id(d.place) for d in told_by}) == 1
