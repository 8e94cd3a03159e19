"""An agent whose stream broke at the door: nobody is let through before it is back, or given up."""

from __future__ import annotations

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Phase
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.commands import OpenGate, ProbeLinks
from allaboard.protocol.events import (
    AgentConnected,
    AgentDisconnected,
    LinksProbed,
    MemberFactsReported,
    ProcessSampled,
    RoleTaken,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue


def test_the_gate_stays_shut_while_a_member_could_not_hear_that_it_opens() -> None:
    clock = FakeClock()
    settings = JobSettings(launched=1, host="h0", joined=True, rank=0)
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)

    def stands(rank: int) -> list[ProcessSampled | MemberFactsReported]:
        told = sample_declaration(rank, 2, local=False)
        box = BoxReading(phase=Phase.ARRIVED, phase_since=clock.now, round=1, declared=told)
        pid = process_key(rank, 7)
        seen = ProcessSampled(
            pid=pid, worker=0, sampled_at=clock.now, state="S", cpu=0.0, box=box, host=f"h{rank}"
        )
        return [seen, MemberFactsReported(pid=pid, facts={"count CPUs": "1"})]

    def through(*events: object) -> set[int]:
        clock.advance(0.1)
        said = job.handle(clock.now, *events)  # type: ignore[arg-type]  # an Event each
        for asked in [c for c in said if isinstance(c, ProbeLinks)]:
            said += job.handle(clock.now, LinksProbed(agent=asked.agent, links=()))
        return {c.pid for c in said if isinstance(c, OpenGate)}

    here = AgentConnected(agent=1, host="h1", probe_address="10.0.0.1:1", rank=1)
    through(
        RoleTaken(leads=True),
        AgentConnected(agent=0, host="h0", probe_address="10.0.0.0:1", rank=0),
    )
    through(here, *stands(1))
    assert through(AgentDisconnected(agent=1, disconnected_at=clock.now), *stands(0)) == set()
    assert through() == set()
    opened = through(here, *stands(1)) | through()
    assert opened == {process_key(0, 7), process_key(1, 7)}


def test_a_host_that_was_away_while_it_trained_is_taken_in_again() -> None:
    clock = FakeClock()
    settings = JobSettings(launched=1, host="h0", joined=True, rank=0)
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)
    here = AgentConnected(agent=1, host="h1", probe_address="10.0.0.1:1", rank=1)

    def trains(rank: int) -> ProcessSampled:
        told = sample_declaration(rank, 2, local=False)
        box = BoxReading(phase=Phase.TRAINING, phase_since=clock.now, round=1, declared=told)
        pid = process_key(rank, 7)
        return ProcessSampled(
            pid=pid, worker=0, sampled_at=clock.now, state="S", cpu=0.0, box=box, host=f"h{rank}"
        )

    job.handle(clock.now, RoleTaken(leads=True), here, trains(0), trains(1))
    clock.advance(40.0)
    job.handle(clock.now, AgentDisconnected(agent=1, disconnected_at=clock.now - 30.0), trains(0))
    assert [m.who.rank for m in job.status.view(clock.now).alive] == [0]
    clock.advance(5.0)
    job.handle(clock.now, trains(1), here)
    assert [m.who.rank for m in job.status.view(clock.now).alive] == [0, 1]
