"""A round of several hosts, with a fake membership."""

from __future__ import annotations

from agent_fakes import FakeJob
from allaboard.cluster.multi_host_restart import MultiHostRestart
from allaboard.coordinator.event_recorder import RECONNECT_GRACE_S
from allaboard.facts import Declared, Outcome, RoundReport
from allaboard.facts.samples import sample_job, sample_member
from allaboard.protocol.commands import Command, ConcludeRound, EndJob, ShowNote
from allaboard.protocol.process_keys import process_key


class Leader:
    connected_count = 1

    def __init__(self) -> None:
        self.lost_hosts: tuple[str, ...] = ()
        self.sent: list[Command] = []

    def send_to_all(self, command: Command) -> None:
        self.sent.append(command)


class Members:
    declared: Declared | None = None
    expected_agents = 2
    may_meet_others = True
    leader_place = "h0"

    def __init__(self, leader: Leader | None = None, is_linked: bool = False) -> None:
        self.leader = leader
        self.is_linked = is_linked

    def answer_for_ended_worker(self) -> None:
        pass


def test_a_lost_host_is_reported_and_ends_a_job_in_which_nobody_trains() -> None:
    leader, job = Leader(), FakeJob()
    restart = MultiHostRestart(Members(leader), job, 30.0, 60.0, lambda: False)
    job.status.opened_at = job.status.progress_at = 10.0
    assert restart.check_hosts(10.0) == []
    leader.lost_hosts = ("h1",)
    assert restart.check_hosts(11.0) == []
    (note,) = restart.check_hosts(11.0 + RECONNECT_GRACE_S)
    assert isinstance(note, ShowNote) and "h1" in note.text
    assert note.text.endswith("; from now on nothing is restarted")
    (end,) = restart.check_hosts(11.0 + RECONNECT_GRACE_S + 1.0)
    assert isinstance(end, EndJob) and end.final
    leader.lost_hosts = ()
    (note,) = restart.check_hosts(60.0)
    assert note == ShowNote(text="all hosts answer again; failed workers are restarted again")


def test_the_leader_s_decision_ends_the_workers_and_lets_the_agent_go() -> None:
    job = FakeJob()
    restart = MultiHostRestart(Members(is_linked=True), job, 30.0, 60.0, lambda: False)
    assert restart.must_stay(1.0)
    report = RoundReport(
        number=0,
        outcome=Outcome.FAILED,
        reason="rank 1 failed",
        seconds=1.0,
        decision="",
        again=False,
    )
    (end,) = restart.adopt_decision([ConcludeRound(report=report)])
    assert isinstance(end, EndJob) and end.reason == "the job has ended: rank 1 failed"
    assert restart.leader_decision is not None and not restart.must_stay(2.0)


def test_the_leader_waits_for_ranks_elsewhere_and_not_for_what_they_left_behind() -> None:
    job = FakeJob()
    restart = MultiHostRestart(Members(Leader()), job, 30.0, 60.0, lambda: True)
    job.status.opened_at = 1.0
    for candidate, stays in ((False, True), (True, False)):
        rank = sample_member(1, key=process_key(1, 9), candidate=candidate)
        job.status.view = lambda _, rank=rank: sample_job(rank)
        assert restart.must_stay(2.0) is stays
