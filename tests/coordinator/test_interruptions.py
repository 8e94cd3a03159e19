"""The agent of one host is asked for the end: what the others say, how they end, whom they blame (nobody)."""

from __future__ import annotations

import signal

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Interruption, Outcome, Phase, Raised
from allaboard.facts.samples import USER, sample_declaration
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.restart.restart_policy import RestartPolicy
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    EndJob,
    OpenGate,
    ProbeLinks,
    ReportInterruption,
)
from allaboard.protocol.events import (
    AgentConnected,
    AgentDisconnected,
    AgentInterrupted,
    CoordinatorChanged,
    Event,
    GateOpened,
    InterruptionReported,
    LinksProbed,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue

LOST = "[gloo/pair.cc:553] Connection closed by peer [10.77.0.2]:63888"
SAID = "h1 was interrupted by SIGTERM, and worker 1 with it"


class Hosts:
    """Two hosts with a worker each, as the agent of the first sees them; it ``leads`` or follows."""

    def __init__(self, restarts: bool = False, leads: bool = True, **policy: object) -> None:
        self.clock = FakeClock()
        settings = JobSettings(
            launched=1,
            host="h0",
            joined=True,
            rank=0,
            policy=EndPolicy(ends_survivors=restarts, restarts=restarts, **policy),  # type: ignore[arg-type]
            restarts=RestartPolicy(allowed=restarts),
        )
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.said: list[Command] = []
        self.boxes: dict[int, BoxReading] = {}
        self.gone: set[int] = set()
        self.tell(WorkerLaunched(worker=0, pid=process_key(0, 7), launched_at=self.clock.now))
        if leads:
            self.tell(RoleTaken(leads=True), self.here(0))
            self.tell(self.here(1))

    def here(self, agent: int) -> AgentConnected:
        return AgentConnected(
            agent=agent, host=f"h{agent}", probe_address=f"10.0.0.{agent}:1", rank=agent
        )

    def reported(self, number: int) -> InterruptionReported:
        """What the leader says of the other host."""
        now = self.clock.now
        interruption = Interruption(host="h1", signal=number, interrupted_at=now, who="worker 1")
        return InterruptionReported(interruption=interruption)

    def stand(self, rank: int, agent: int) -> list[Event]:
        told = sample_declaration(rank, 2, local=False)
        pid = process_key(agent, 7)
        at = self.clock.now
        self.boxes[pid] = BoxReading(phase=Phase.ARRIVED, phase_since=at, round=1, declared=told)
        return [*self.looks(pid), MemberFactsReported(pid=pid, facts={"count CPUs": "1"})]

    def train(self, *ranks: int) -> None:
        """All are through the roll call, and have done steps."""
        for rank in ranks:
            told = sample_declaration(rank, 2, local=False)
            self.boxes[process_key(rank, 7)] = BoxReading(
                phase=Phase.TRAINING,
                phase_since=self.clock.now,
                round=1,
                declared=told,
                step=40,
                ops=40,
            )
        self.tell(GateOpened(opened_at=self.clock.now))

    def fall(self, rank: int, kind: str = "RuntimeError", message: str = LOST) -> None:
        """It raises, and ends."""
        raised = Raised(type=kind, message=message, raised_at=self.clock.now, where=USER)
        pid = process_key(rank, 7)
        told = sample_declaration(rank, 2, local=False)
        self.boxes[pid] = BoxReading(
            phase=Phase.LEAVING, phase_since=self.clock.now, round=1, declared=told, step=40, ops=40,
            raised=raised,
        )  # fmt: skip
        self.tell()
        self.end(rank, code=1)

    def end(self, rank: int, **how: int) -> None:
        self.gone.add(process_key(rank, 7))
        self.tell(ProcessExited(pid=process_key(rank, 7), exited_at=self.clock.now, **how))  # type: ignore[arg-type]

    def interrupt(self, agent: int = 1, number: int = signal.SIGTERM) -> None:
        host = f"h{agent}" if agent else ""
        self.tell(
            AgentInterrupted(signal=number, interrupted_at=self.clock.now, agent=agent, host=host)
        )

    def looks(self, *pids: int) -> list[Event]:
        return [
            ProcessSampled(
                pid=pid, worker=0, sampled_at=self.clock.now, state="S", cpu=0.0, box=self.boxes[pid],
                host=f"h{pid >> 32}",
            )
            for pid in pids
        ]  # fmt: skip

    def tell(self, *events: Event) -> None:
        living = [p for p in self.boxes if p not in self.gone]
        answer = self.job.handle(self.clock.now, *self.looks(*living), *events)
        for asked in [c for c in answer if isinstance(c, ProbeLinks)]:
            answer += self.job.handle(self.clock.now, LinksProbed(agent=asked.agent, links=()))
        self.said += answer

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.25)):
            self.clock.advance(0.25)
            self.tell()

    @property
    def rules(self) -> list[str]:
        return [c.finding.rule for c in self.said if isinstance(c, AnnounceFinding)]

    @property
    def ends(self) -> list[tuple[Outcome, str]]:
        return [(c.outcome, c.reason) for c in self.said if isinstance(c, EndJob)]

    @property
    def halted(self) -> list[ReportInterruption]:
        return [c for c in self.said if isinstance(c, ReportInterruption)]


def test_who_falls_with_an_interrupted_host_is_told_so_and_nobody_is_blamed() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.interrupt()
    assert hosts.halted == [
        ReportInterruption(host="h1", signal=signal.SIGTERM, members="worker 1")
    ]
    hosts.end(1, signal=signal.SIGTERM)
    hosts.fall(0)
    hosts.tell(AgentDisconnected(agent=1, disconnected_at=hosts.clock.now))
    hosts.wait(10)
    assert hosts.rules == []
    assert hosts.ends == []  # what becomes of the others is for whoever started them
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, SAID)


def test_ctrl_c_is_no_sigint_from_outside() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.interrupt(number=signal.SIGINT)
    hosts.fall(1, "KeyboardInterrupt", "")
    hosts.fall(0)
    hosts.wait(10)
    assert hosts.rules == []
    found = hosts.job.status.interruption_behind_end
    assert found is not None and found.signal == signal.SIGINT


def test_an_agent_that_is_lost_after_it_was_interrupted_went_with_a_word() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.interrupt()
    hosts.tell(AgentDisconnected(agent=1, disconnected_at=hosts.clock.now))
    hosts.fall(0)
    hosts.wait(10)
    assert hosts.rules == []
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, SAID)


def test_a_batch_system_that_ends_the_worker_first_is_no_killer() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.end(1, signal=signal.SIGTERM)
    hosts.clock.advance(0.3)
    hosts.interrupt()
    hosts.fall(0)
    hosts.wait(10)
    assert hosts.rules == []
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, SAID)


def test_a_failure_of_ones_own_stays_one() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.interrupt()
    hosts.end(1, signal=signal.SIGTERM)
    hosts.fall(0, "ValueError", "bad batch")
    hosts.wait(10)
    assert "EXIT002" in hosts.rules
    assert hosts.job.status.outcome[0] is Outcome.FAILED


def test_who_fell_long_before_did_not_fall_because_of_it() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.fall(0)
    hosts.wait(10)
    assert hosts.rules == ["EXIT005"]
    hosts.interrupt()  # its user was tired of waiting
    assert hosts.job.status.outcome[0] is Outcome.FAILED


def test_who_ended_well_has_completed() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.interrupt()
    hosts.end(1, signal=signal.SIGTERM)
    hosts.end(0, code=0)
    assert hosts.job.status.outcome[0] is Outcome.COMPLETED


def test_where_all_are_to_be_started_again_it_ends_all() -> None:
    hosts = Hosts(restarts=True)
    hosts.train(0, 1)
    hosts.interrupt()
    assert hosts.ends == []
    hosts.end(1, signal=signal.SIGTERM)
    assert hosts.ends == [(Outcome.INTERRUPTED, f"{SAID}; ending the others")]
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, SAID)


def test_a_round_that_was_ended_for_a_killed_worker_is_not_begun_anew() -> None:
    hosts = Hosts(restarts=True)
    hosts.train(0, 1)
    hosts.end(1, signal=signal.SIGTERM)
    assert [outcome for outcome, _ in hosts.ends] == [Outcome.FAILED]
    hosts.interrupt()
    hosts.end(0, signal=signal.SIGTERM)
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, SAID)


def test_a_host_that_does_not_lead_is_told_and_remembers() -> None:
    hosts = Hosts(leads=False)
    hosts.train(0)
    hosts.tell(CoordinatorChanged(is_local=False))
    hosts.tell(hosts.reported(signal.SIGTERM))
    assert [str(i) for i in hosts.job.status.view(hosts.clock.now).interruptions] == [SAID]
    hosts.tell(CoordinatorChanged(is_local=True))  # the host that decides has gone
    hosts.fall(0)
    hosts.wait(10)
    assert hosts.rules == []
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, SAID)


def test_what_is_no_signal_for_the_end_is_not_believed() -> None:
    hosts = Hosts(leads=False)
    hosts.tell(hosts.reported(4711))
    assert hosts.job.status.view(hosts.clock.now).interruptions == ()


def test_ones_own_interrupt_is_told_to_all_but_not_in_a_job_of_one_host() -> None:
    hosts = Hosts()
    hosts.train(0, 1)
    hosts.interrupt(agent=0, number=signal.SIGINT)
    assert hosts.halted == [ReportInterruption(host="h0", signal=signal.SIGINT, members="worker 0")]
    assert hosts.job.status.outcome == (Outcome.INTERRUPTED, "interrupted")


@pytest.mark.parametrize("only_reports", [False, True])
def test_a_roll_call_whose_member_was_interrupted_blames_nobody(only_reports: bool) -> None:
    """Where the user gave no timeout the framework's own decides."""
    hosts = Hosts(only_reports=only_reports)
    told = BoxReading(phase=Phase.IMPORTED, phase_since=hosts.clock.now, round=0)
    hosts.boxes[process_key(1, 7)] = told
    hosts.tell(*hosts.stand(0, 0))
    hosts.interrupt()
    hosts.end(1, signal=signal.SIGTERM)
    hosts.wait(2)
    assert hosts.rules == []
    ending = (Outcome.INTERRUPTED, f"{SAID}; ending the others")
    assert hosts.ends == ([] if only_reports else [ending])
    assert any(isinstance(c, OpenGate) for c in hosts.said) is only_reports


def test_who_leaves_the_door_by_ctrl_c_is_not_waited_for() -> None:
    hosts = Hosts()
    hosts.tell(*hosts.stand(1, 1), *hosts.stand(0, 0)[:1])
    hosts.interrupt(number=signal.SIGINT)
    hosts.fall(1, "KeyboardInterrupt", "")
    assert [outcome for outcome, _ in hosts.ends] == [Outcome.INTERRUPTED]
    assert hosts.rules == []


def test_nobody_is_let_through_to_one_that_ends() -> None:
    hosts = Hosts()
    hosts.tell(*hosts.stand(1, 1))
    hosts.interrupt()
    hosts.tell(*hosts.stand(0, 0))
    hosts.wait(1)
    assert not any(isinstance(c, OpenGate) for c in hosts.said)


def test_once_another_has_come_in_its_place_it_is_past() -> None:
    hosts = Hosts()
    hosts.tell(*hosts.stand(1, 1))
    hosts.interrupt()
    hosts.end(1, signal=signal.SIGTERM)
    hosts.wait(1)
    hosts.tell(hosts.here(2), *hosts.stand(1, 2), *hosts.stand(0, 0))
    hosts.wait(1)
    assert any(isinstance(c, OpenGate) for c in hosts.said)
    hosts.gone.add(process_key(2, 7))
    hosts.fall(0)
    assert hosts.job.status.outcome[0] is Outcome.FAILED
