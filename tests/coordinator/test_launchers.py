"""Somebody else's launcher on another host: its end is no member's, whoever is the first below it to end."""

from __future__ import annotations

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Finding, Phase, Raised
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.commands import AnnounceFinding
from allaboard.protocol.events import (
    AgentConnected,
    ProcessExited,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue

LOST = "[gloo/pair.cc] Connection closed by peer [10.0.0.2]:18334"
CHILD = "/train.py FAILED, root cause: rank 1"


class Torchruns:
    """One on each of two hosts, with one rank below it; this host is the one where all meet."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        settings = JobSettings(launched=1, host="h0", joined=True, wrapped=True)
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.found: list[Finding] = []
        here = AgentConnected(agent=1, host="h1", probe_address="10.0.0.1:1", rank=1)
        self.tell(
            RoleTaken(leads=True), here, WorkerLaunched(worker=0, pid=7, launched_at=self.clock.now)
        )
        self.tell(*(s for host in (0, 1) for s in (self.torchrun(host), self.rank(host))))

    def tell(self, *events: object) -> None:
        self.clock.advance(0.2)
        said = self.job.handle(self.clock.now, *events)  # type: ignore[arg-type]  # an Event each
        self.found += [c.finding for c in said if isinstance(c, AnnounceFinding)]

    def torchrun(self, host: int, raised: str = "") -> ProcessSampled:
        box = BoxReading(
            phase=Phase.IMPORTED, phase_since=self.clock.now, round=0, raised=self._raised(raised)
        )
        return self._seen(host, 7, box, started_by_agent=True, wraps_launcher=True)

    def rank(self, host: int, raised: str = "") -> ProcessSampled:
        told = sample_declaration(host, 2, local=False)
        box = BoxReading(
            phase=Phase.TRAINING, phase_since=self.clock.now, round=1, declared=told, step=9,
            raised=self._raised(raised),
        )  # fmt: skip
        return self._seen(host, 8, box)

    def _raised(self, message: str) -> Raised | None:
        kind = "ChildFailedError" if message == CHILD else "RuntimeError"
        return Raised(type=kind, message=message, raised_at=self.clock.now) if message else None

    def _seen(self, host: int, pid: int, box: BoxReading, **how: bool) -> ProcessSampled:
        at, worker = self.clock.now, host << 12
        return ProcessSampled(
            pid=process_key(host, pid), worker=worker, sampled_at=at, state="S", cpu=0.0, box=box,
            host=f"h{host}", **how,
        )  # fmt: skip

    def fails(self, host: int) -> None:
        """The launcher of this host passes on what it saw."""
        end = ProcessExited(pid=process_key(host, 7), exited_at=self.clock.now, code=1)
        self.tell(self.torchrun(host, CHILD), end)


def test_who_was_killed_is_named_and_no_launcher_on_any_host() -> None:
    jobs = Torchruns()
    jobs.tell(ProcessExited(pid=process_key(1, 8), exited_at=jobs.clock.now, signal=9))
    jobs.tell(jobs.rank(0, LOST), ProcessExited(pid=8, exited_at=jobs.clock.now))
    jobs.fails(1)
    jobs.fails(0)
    for _ in range(20):
        jobs.tell()
    (found,) = jobs.found
    assert (found.rule, found.who[0].rank, found.who[0].host) == ("EXIT001", 1, "h1")


def test_where_how_a_rank_ended_was_not_seen_no_launcher_is_blamed_for_it() -> None:
    jobs = Torchruns()
    jobs.tell(ProcessExited(pid=process_key(1, 8), exited_at=jobs.clock.now))
    jobs.tell(jobs.rank(0, LOST), ProcessExited(pid=8, exited_at=jobs.clock.now))
    jobs.fails(1)
    jobs.fails(0)
    for _ in range(30):
        jobs.tell()
    assert [f.rule for f in jobs.found] == ["EXIT005"]


def test_a_script_that_starts_its_ranks_itself_is_told_apart_on_another_host_too() -> None:
    jobs = Torchruns()
    plain = ProcessSampled(
        pid=process_key(1, 7),
        worker=1 << 12,
        sampled_at=jobs.clock.now,
        state="S",
        cpu=0.0,
        host="h1",
        started_by_agent=True,
    )
    jobs.tell(plain)
    assert [m.who.pid for m in jobs.job.status.view(jobs.clock.now).members if m.launcher] == [7, 7]


def test_a_member_that_is_started_again_is_no_launcher_of_the_one_before() -> None:
    settings = JobSettings(launched=1, host="h0")
    clock = FakeClock()
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)
    told = BoxReading(
        phase=Phase.TRAINING, phase_since=clock.now, round=1, declared=sample_declaration(0, 2)
    )
    for pid, box in ((7, told), (8, None)):
        job.handle(
            clock.now,
            WorkerLaunched(worker=0, pid=pid, launched_at=clock.now),
            ProcessSampled(
                pid=pid, worker=0, sampled_at=clock.now, state="S", cpu=0.0, box=box,
                started_by_agent=True,
            ),
        )  # fmt: skip
        job.handle(clock.now, ProcessExited(pid=7, exited_at=clock.now, signal=9))
    assert [m.who.pid for m in job.status.view(clock.now).members if not m.launcher] == [7, 8]


def test_a_child_that_outlives_all_ranks_does_not_keep_the_job_going() -> None:
    jobs = Torchruns()
    child = ProcessSampled(
        pid=process_key(1, 9), worker=1 << 12, sampled_at=jobs.clock.now, state="S", cpu=0.0,
        host="h1", candidate=True,
    )  # fmt: skip
    jobs.tell(child)
    for host, pid in ((0, 8), (1, 8), (0, 7), (1, 7)):
        jobs.tell(ProcessExited(pid=process_key(host, pid), exited_at=jobs.clock.now, code=0))
    view = jobs.job.status.view(jobs.clock.now)
    assert [m.who.pid for m in view.alive] == [9] and view.ended and jobs.found == []
