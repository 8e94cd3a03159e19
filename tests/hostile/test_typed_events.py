"""No event that the wire lets through makes the state of a job raise, whatever it holds.

A few seconds here, a minute in CI, and an hour in `make test-long`: ``ALLABOARD_FUZZ_S`` gives the seconds,
``ALLABOARD_FUZZ_SEED`` the first seed.
"""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import cast

import pytest
from fuzzed_events import EventMaker

from allaboard.clock import FakeClock
from allaboard.cluster.connections.foreign_events import translate_event
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.commands import AnnounceFinding, DropAgent
from allaboard.protocol.events import AgentConnected, ProcessSampled, RoleTaken, WorkerLaunched
from allaboard.rules.engine.catalogue import load_catalogue

SECONDS = float(os.environ.get("ALLABOARD_FUZZ_S", "60" if os.environ.get("CI") == "true" else "4"))
FIRST_SEED = int(os.environ.get("ALLABOARD_FUZZ_SEED", "1"))
RULE_FAILED = "this rule itself failed"
ROUNDS = 12
"""Messages that one job gets before the next one begins."""


def run_job(seed: int) -> list[str]:
    """Hand a job the events of two agents; return the reasons for which agents were dropped."""
    clock = FakeClock()
    settings = JobSettings(
        launched=1, host="h0", joined=True, rank=0, policy=EndPolicy(), timeout=20.0
    )
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)
    started = [WorkerLaunched(worker=0, pid=1, launched_at=clock.now), RoleTaken(leads=True)]
    agents = [
        AgentConnected(agent=n, host=f"h{n}", probe_address=f"h{n}:1", rank=n) for n in range(3)
    ]
    job.handle(clock.now, *started, *agents)
    make = EventMaker(seed, clock.now)
    dropped = []
    for _ in range(ROUNDS):
        make.now = clock.advance(0.7)
        own = ProcessSampled(pid=1, worker=0, sampled_at=clock.now, state="S", cpu=0.0)
        number = make.random.choice((1, 2))
        sender = SimpleNamespace(
            clock_offset=0.0, number=number, hello=SimpleNamespace(host=f"h{number}")
        )
        events = [
            e
            for t in make.make()
            if (e := translate_event(t, cast(MemberConnection, sender), clock.now)) is not None
        ]
        commands = job.handle(clock.now, own, *events)
        dropped += [c.reason for c in commands if isinstance(c, DropAgent)]
        dropped += [
            f"{c.finding.rule}: {c.finding.summary} {c.finding.evidence}"
            for c in commands
            if isinstance(c, AnnounceFinding) and RULE_FAILED in c.finding.summary
        ]
        job.status.view(clock.now)
    return dropped


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_no_event_stops_the_state_of_a_job() -> None:
    end, seed, reasons = time.monotonic() + SECONDS, FIRST_SEED, dict[str, int]()
    while time.monotonic() < end:
        for reason in run_job(seed):
            reasons.setdefault(reason, seed)
        seed += 1
    print(f"{seed - FIRST_SEED} jobs of {ROUNDS} messages")
    assert reasons == {}, f"{len(reasons)} in {seed - FIRST_SEED} jobs"
    assert seed > FIRST_SEED + 3
