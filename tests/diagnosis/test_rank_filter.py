"""`diagnose PID…` of all that runs: data loaders' workers and launchers are among the pids, and no ranks."""

from __future__ import annotations

from allaboard.diagnosis.live import live_diagnosis
from allaboard.facts import Frame, HostLook, Member, Phase, Present, Stack, Who
from allaboard.facts.samples import REDUCE, USER
from allaboard.report.diagnosis import as_text

LIB, PACKAGES = "/usr/lib/python3.11", "/v/lib/python3.11/site-packages"
SLEEPS = (Frame("/home/u/data.py", 12, "fetch", "time.sleep(9)"), USER)
IDLE = (
    Frame(f"{LIB}/selectors.py", 415, "select"),
    Frame(f"{PACKAGES}/torch/utils/data/_utils/worker.py", 334, "_worker_loop"),
    Frame(f"{LIB}/multiprocessing/process.py", 314, "_bootstrap"),
    USER,
)
JOINS = (Frame(f"{LIB}/multiprocessing/process.py", 149, "join"), USER)


def look(*stacks: tuple[Frame, ...], rank: int = -1) -> HostLook:
    people = []
    for number, frames in enumerate(stacks):
        stack = Stack(frames=frames, taken_at=10.0, samples=5, span=2.0)
        who = Who(index=number, rank=rank, host="h", pid=100 + number)
        member = Member(
            who=who, worker=number, phase=Phase.TRAINING, framework="torch", stack=stack
        )
        people.append(Present(member=member, command=("python", "train.py")))
    return HostLook(host="h", now=12.0, present=tuple(people))


def test_only_those_that_may_be_ranks_are_compared() -> None:
    found = live_diagnosis.diagnose_processes([look((REDUCE, USER), SLEEPS, IDLE, IDLE, JOINS)])
    assert {w.pid for f in found.findings for w in f.who} == {101}
    assert found.beside == (
        "pids 102, 103: DataLoader workers",
        "pid 104: parent of the processes that it waits for",
    )
    assert len(found.read) == 5 and "no ranks of the job:\n    pids 102, 103" in as_text(found)


def test_a_process_that_tells_no_rank_has_no_number_of_one() -> None:
    found = live_diagnosis.diagnose_processes([look((REDUCE, USER), SLEEPS)])
    assert [(c.ranks, c.others) for c in found.crowds] == [("", ("pid 100",)), ("", ("pid 101",))]


def test_workers_have_the_rank_of_who_started_them_and_are_none() -> None:
    found = live_diagnosis.diagnose_processes([look(IDLE, IDLE, SLEEPS, rank=0)])
    assert found.beside == ("pids 100, 101: DataLoader workers",)
    assert [c.ranks for c in found.crowds] == ["0"]


def test_where_nobody_may_be_a_rank_all_are_looked_at() -> None:
    assert live_diagnosis.diagnose_processes([look(IDLE, IDLE)]).beside == ()
