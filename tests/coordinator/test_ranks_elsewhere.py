"""A job whose other ranks another agent may have started: only a bound of the user's ends it."""

from __future__ import annotations

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Phase
from allaboard.facts.samples import sample_declaration
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.commands import Command, EndJob, OpenGate
from allaboard.protocol.events import MeetingImpossible, ProcessSampled, RoleTaken, WorkerLaunched
from allaboard.rules.engine.catalogue import load_catalogue

TIMEOUT_S = 60.0


class _Alone:
    """Rank 0 of two, the only process of its agent, at the gate."""

    def __init__(self, among_agents: EndPolicy | None) -> None:
        self.clock = FakeClock()
        settings = JobSettings(launched=1, host="a", policy_among_agents=among_agents)
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.job.handle(
            self.clock.now, WorkerLaunched(worker=0, pid=100, launched_at=self.clock.now)
        )
        self.arrived_at = self.clock.now

    def tick(self, seconds: float, *events: MeetingImpossible | RoleTaken) -> list[Command]:
        self.clock.now += seconds
        declared = sample_declaration(0, 2, place="tcp://127.0.0.1:29500")
        box = BoxReading(
            phase=int(Phase.ARRIVED), phase_since=self.arrived_at, round=1, declared=declared
        )
        sample = ProcessSampled(
            pid=100, worker=0, sampled_at=self.clock.now, state="S", cpu=0.0, box=box
        )
        return self.job.handle(self.clock.now, *events, sample)


def _ends(commands: list[Command]) -> bool:
    return any(isinstance(c, EndJob) for c in commands)


def _opens(commands: list[Command]) -> bool:
    return any(isinstance(c, OpenGate) for c in commands)


def test_where_this_agent_starts_all_ranks_a_missing_one_ends_the_job() -> None:
    alone = _Alone(None)
    alone.tick(0.1)
    assert not alone.job.status.spans_agents
    assert _ends(alone.tick(TIMEOUT_S))


def test_without_a_bound_the_framework_is_let_in_after_the_default_time() -> None:
    alone = _Alone(EndPolicy(only_reports=True))
    alone.tick(0.1)
    assert alone.job.status.spans_agents
    alone.tick(0.1, RoleTaken(leads=True))
    commands = [c for _ in range(4) for c in alone.tick(TIMEOUT_S / 2)]
    assert _opens(commands) and not _ends(commands)
    assert [f.rule for f in alone.job.status.findings] == ["JOIN001"]


def test_a_bound_of_the_users_still_ends_it() -> None:
    alone = _Alone(EndPolicy(only_reports=False))
    alone.tick(0.1, RoleTaken(leads=True))
    assert _ends(alone.tick(TIMEOUT_S))


@pytest.mark.parametrize("leads", [True, False])
def test_where_the_agents_cannot_meet_the_framework_is_let_in_at_once(leads: bool) -> None:
    alone = _Alone(EndPolicy(only_reports=True))
    alone.tick(0.1, RoleTaken(leads=leads))
    commands = alone.tick(0.1, MeetingImpossible(reason="nobody says where"))
    assert _opens(commands) and not _ends(commands)
    assert "nobody says where" in alone.job.status.early_open_reason
    assert not alone.job.status.findings
