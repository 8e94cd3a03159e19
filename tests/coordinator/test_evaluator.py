"""An evaluator on a host of its own: no framework's init ever says who it is, and its agent does."""

from __future__ import annotations

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Declared, Op, Outcome, Phase, Severity
from allaboard.policy.end.failure_end import LAST_EVALUATION_GRACE_S
from allaboard.protocol.commands import Command, EndJob
from allaboard.protocol.events import (
    AgentConnected,
    ProcessExited,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue

CLUSTER = {"chief:0": "h0:9", "ps:0": "h1:9"}


class Evaluated:
    """A chief here, a server and an evaluator on hosts of their own."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        settings = JobSettings(launched=1, host="h0", joined=True, rank=0)
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.said: list[Command] = []
        self.tell(
            RoleTaken(leads=True), WorkerLaunched(worker=0, pid=7, launched_at=self.clock.now)
        )
        self.tell(
            *(
                AgentConnected(agent=n, host=f"h{n}", probe_address=f"h{n}:1", rank=-1)
                for n in (1, 2)
            )
        )
        self.look()

    def tell(self, *events: object) -> None:
        self.clock.advance(0.5)
        self.said += self.job.handle(self.clock.now, *events)  # type: ignore[arg-type]  # an Event each

    def look(self) -> None:
        own = Phase.IMPORTED
        self.tell(self.seen(0, "chief"), self.seen(1, "ps"), self.seen(2, "", own))

    def seen(self, host: int, job: str, phase: Phase = Phase.TRAINING) -> ProcessSampled:
        now, told = self.clock.now, None
        if job:
            told = Declared(
                framework="tensorflow", call="ParameterServerStrategy", rank=host, world_size=2, job=job,
                index=0, cluster=CLUSTER, hold=job == "chief", local=False,
            )  # fmt: skip
        op = Op("Server.join", 1, now) if job == "ps" else None
        box = BoxReading(
            phase=phase, phase_since=now, round=1 if job else 0, declared=told, step=9, op=op
        )
        return ProcessSampled(
            pid=process_key(host, 7), worker=host << 12, sampled_at=now, state="S", cpu=0.0, box=box,
            host=f"h{host}",
            started_by_agent=True, extra_task="" if job else "evaluator:0",
        )  # fmt: skip

    def outcomes(self) -> list[Outcome]:
        return [c.outcome for c in self.said if isinstance(c, EndJob)]


def test_it_is_called_what_it_is_and_gets_a_minute_after_the_training() -> None:
    world = Evaluated()
    names = [m.who.name for m in world.job.status.view(world.clock.now).members]
    assert names == ["chief 0", "ps 0", "evaluator 0"]
    world.tell(ProcessExited(pid=7, exited_at=world.clock.now, code=0))
    world.tell(world.seen(1, "ps"), world.seen(2, "", Phase.IMPORTED))
    assert world.outcomes() == []
    world.clock.advance(LAST_EVALUATION_GRACE_S)
    world.tell(world.seen(1, "ps"), world.seen(2, "", Phase.IMPORTED))
    assert world.outcomes() == [Outcome.COMPLETED]


def test_the_servers_are_ended_when_it_has_ended_too() -> None:
    world = Evaluated()
    world.tell(ProcessExited(pid=7, exited_at=world.clock.now, code=0))
    world.tell(ProcessExited(pid=process_key(2, 7), exited_at=world.clock.now, code=0))
    world.tell(world.seen(1, "ps"))
    assert world.outcomes() == [Outcome.COMPLETED]


def test_a_training_that_ends_well_is_complete_though_its_evaluator_was_killed() -> None:
    world = Evaluated()
    world.tell(ProcessExited(pid=process_key(2, 7), exited_at=world.clock.now, signal=9))
    for _ in range(20):
        world.tell(world.seen(0, "chief"), world.seen(1, "ps"))
    assert world.outcomes() == []
    (found,) = world.job.status.findings
    assert (found.rule, found.severity) == ("EXIT001", Severity.WARNING)
    world.tell(ProcessExited(pid=7, exited_at=world.clock.now, code=0))
    world.tell(world.seen(1, "ps"))
    assert world.outcomes() == [Outcome.COMPLETED]


@pytest.mark.parametrize(
    ("worker", "evaluator", "outcome"),
    [(0, 9, Outcome.COMPLETED), (9, 0, Outcome.FAILED), (None, 9, Outcome.FAILED)],
)
def test_how_a_host_with_an_evaluator_has_ended(
    worker: int | None, evaluator: int, outcome: Outcome
) -> None:
    """A task of a MultiWorkerMirroredStrategy, where there is one, and its evaluator, under one agent."""
    clock = FakeClock()
    tasks = {6: ("worker", 0)} if worker is not None else {}
    tasks |= {7: ("evaluator", 0)}
    settings = JobSettings(launched=len(tasks), host="h0", tasks=tuple(tasks.values()))
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)
    for number, pid in enumerate(tasks):
        job.handle(clock.now, WorkerLaunched(worker=number, pid=pid, launched_at=clock.now))
    for pid, signal in ((6, worker), (7, evaluator)):
        if pid in tasks:
            how = {"signal": signal} if signal else {"code": 0}
            job.handle(clock.now, ProcessExited(pid=pid, exited_at=clock.now, **how))
    assert job.status.outcome[0] is outcome
    assert ("evaluator 0" in job.status.outcome[1]) is (outcome is Outcome.COMPLETED)
