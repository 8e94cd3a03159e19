"""A follower's job state after the leading agent was lost: it names that agent, and not only lost peers."""

from __future__ import annotations

from msgspec.structs import replace

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Answer, Finding, LeaderLoss, Phase, Raised, Severity
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.commands import AnnounceFinding
from allaboard.protocol.events import (
    CoordinatorChanged,
    Event,
    GateOpened,
    LeaderLost,
    ProcessExited,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.rules.engine.catalogue import load_catalogue

PEER = "[gloo/pair.cc] Connection closed by peer [10.0.0.1]:18334"


class FollowerJob:
    """The state of rank 1's host, whose job has trained under the leader on h0."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        settings = JobSettings(launched=1, host="h1", joined=True, rank=1)
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.findings: list[Finding] = []
        self.tell(
            RoleTaken(leads=False), WorkerLaunched(worker=0, pid=7, launched_at=self.clock.now)
        )
        self.tell(self.sample(), CoordinatorChanged(is_local=False))
        self.tell(GateOpened(opened_at=self.clock.now))
        self.tell(self.sample(step=9))

    def tell(self, *events: Event) -> None:
        self.clock.advance(0.3)
        commands = self.job.handle(self.clock.now, *events)
        self.findings += [c.finding for c in commands if isinstance(c, AnnounceFinding)]

    def sample(self, step: int = 0, raises: bool = False) -> ProcessSampled:
        now = self.clock.now
        error = Raised(type="RuntimeError", message=PEER, raised_at=now) if raises else None
        box = BoxReading(
            phase=Phase.TRAINING,
            phase_since=now,
            round=1,
            declared=sample_declaration(1, 3, local=False),
            step=step,
            raised=error,
        )
        return ProcessSampled(
            pid=7, worker=0, sampled_at=now, state="S", cpu=0.0, box=box, rank=1, host="h1"
        )

    def lose_leader(self) -> LeaderLoss:
        loss = LeaderLoss(
            host="h0", rank=0, address="10.0.0.1:41231", lost_at=self.clock.now, how="it ended"
        )
        self.tell(CoordinatorChanged(is_local=True), LeaderLost(loss=loss))
        return loss

    def refuse(self, loss: LeaderLoss, tries: int = 1) -> None:
        refused = replace(loss, answer=Answer.REFUSED, detail="Connection refused", tries=tries)
        self.tell(LeaderLost(loss=refused))

    def rules(self) -> list[str]:
        return [f.rule for f in self.findings]


def test_a_worker_that_falls_with_the_leader_is_explained_by_it() -> None:
    job = FollowerJob()
    loss = job.lose_leader()
    job.tell(job.sample(step=9, raises=True), ProcessExited(pid=7, exited_at=job.clock.now, code=1))
    assert job.rules() == []  # not even of lost peers, while the leader's port is being tried
    job.refuse(loss)
    for _ in range(30):
        job.tell()
    (finding,) = job.findings
    assert finding.rule == "EXIT012" and finding.severity is Severity.ERROR
    assert [(w.host, w.rank) for w in finding.who] == [("h0", 0)]
    assert finding.summary == (
        "the agent of h0 (10.0.0.1:41231), which led the job, has gone; worker 1 failed because of it"
    )


def test_a_loss_that_ends_nobody_is_a_warning_after_a_moment() -> None:
    job = FollowerJob()
    loss = job.lose_leader()
    job.refuse(loss)
    assert job.rules() == []
    for tries in range(2, 12):
        job.refuse(loss, tries)
    (finding,) = job.findings
    assert finding.rule == "EXIT012" and finding.severity is Severity.WARNING


def test_a_leader_that_answers_again_is_not_lost() -> None:
    job = FollowerJob()
    job.lose_leader()
    job.tell(LeaderLost(loss=None))
    job.tell(job.sample(step=9, raises=True), ProcessExited(pid=7, exited_at=job.clock.now, code=1))
    for _ in range(30):
        job.tell()
    assert job.rules() == ["EXIT005"]
