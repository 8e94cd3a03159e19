"""The smaller side of a divided network ends nothing; the agent that leads next probes no links."""

from __future__ import annotations

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.multi_host_state import MAX_ISOLATION_S
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Answer, LeaderLoss, Op, Phase
from allaboard.facts.samples import sample_declaration
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.commands import Command, EndJob, ProbeLinks
from allaboard.protocol.events import (
    AgentConnected,
    Event,
    GateOpened,
    LeaderLost,
    ProcessSampled,
    QuorumChanged,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue

ISOLATION = "1 of 3 agents can be reached from here"


class StuckJob:
    """The state of rank 1's host, whose worker waits in a collective; a hang is ended after a minute."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        policy = EndPolicy(stop_on_hang=True, hang_after=60.0)
        settings = JobSettings(launched=1, host="h1", joined=True, rank=1, policy=policy)
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.commands: list[Command] = []
        self.stuck_since = self.clock.now
        self.tell(
            RoleTaken(leads=False), WorkerLaunched(worker=0, pid=7, launched_at=self.clock.now)
        )
        self.tell(self.sample(7, 1))
        self.tell(GateOpened(opened_at=self.clock.now))

    def tell(self, *events: Event, seconds: float = 0.3) -> None:
        self.clock.advance(seconds)
        self.commands += self.job.handle(self.clock.now, *events)

    def sample(self, pid: int, rank: int) -> ProcessSampled:
        box = BoxReading(
            phase=Phase.TRAINING,
            phase_since=self.stuck_since,
            round=1,
            declared=sample_declaration(rank, 3, local=False),
            step=9,
            op=Op("all_reduce", 9, self.stuck_since),
        )
        return ProcessSampled(
            pid=pid, worker=0, sampled_at=self.clock.now, state="S", cpu=0.0, box=box, rank=rank
        )

    def wait(self, seconds: float) -> None:
        """Let the job stand still for so long."""
        for _ in range(int(seconds)):
            self.tell(self.sample(7, 1), seconds=1.0)

    def ends(self) -> bool:
        return any(isinstance(c, EndJob) for c in self.commands)


@pytest.mark.parametrize("isolation", ["", ISOLATION])
def test_a_hang_is_ended_only_where_most_agents_are(isolation: str) -> None:
    job = StuckJob()
    job.tell(QuorumChanged(changed_at=job.clock.now, isolation=isolation))
    job.wait(300)
    assert job.ends() is not bool(isolation)


def test_the_bounds_of_the_user_count_again_once_the_others_answer() -> None:
    job = StuckJob()
    job.tell(QuorumChanged(changed_at=job.clock.now, isolation=ISOLATION))
    job.wait(300)
    job.tell(QuorumChanged(changed_at=job.clock.now))
    job.wait(5)
    assert job.ends()


def test_no_side_observes_for_ever() -> None:
    job = StuckJob()
    job.tell(QuorumChanged(changed_at=job.clock.now, isolation=ISOLATION))
    job.wait(MAX_ISOLATION_S + 5)
    assert job.ends()


def test_the_next_leader_probes_no_links_and_forgets_the_loss_once_that_agent_follows() -> None:
    job = StuckJob()
    loss = LeaderLoss(
        host="h0",
        rank=0,
        address="10.0.0.1:41231",
        lost_at=job.clock.now,
        how="nothing has come over it for 30 s",
        answer=Answer.SILENT,
        is_silent=True,
    )
    agents = [
        AgentConnected(agent=n, host=host, probe_address=f"{host}:1", rank=rank)
        for n, host, rank in ((0, "h1", 1), (1, "h2", 2), (2, "h0", 0))
    ]
    job.tell(LeaderLost(loss=loss), RoleTaken(leads=True, is_roll_call_over=True), *agents[:2])
    assert job.job.status.view(job.clock.now).leader_loss == loss
    job.tell(agents[2])
    assert job.job.status.view(job.clock.now).leader_loss is None
    for _ in range(40):
        samples = [job.sample(process_key(n, 7), a.rank) for n, a in enumerate(agents)]
        job.tell(*samples)
    assert not any(isinstance(c, ProbeLinks) for c in job.commands)
