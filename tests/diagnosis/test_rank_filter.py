"""`diagnose PID…` of all that runs: data loaders' workers and launchers are among the pids, and no ranks."""

from __future__ import annotations

import msgspec

from allaboard.diagnosis.live import live_diagnosis
from allaboard.diagnosis.live.process_probes import stated_arguments
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


def test_a_server_beside_a_whole_world_is_no_rank() -> None:
    ranks = [numbered(rank, (REDUCE, USER)) for rank in range(2)]
    server = look(SLEEPS).present[0]
    who = msgspec.structs.replace(server.member.who, index=2, pid=200)
    member = msgspec.structs.replace(server.member, who=who, worker=2)
    server = msgspec.structs.replace(server, member=member, variables={"WORLD_SIZE": "2"})
    found = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=(*ranks, server))]
    )
    assert not any(w.pid == 200 for f in found.findings for w in f.who)
    assert found.beside == (
        "pid 200: no rank, since all of them are other processes; it is asleep at data.py:12 in fetch",
    )
    # Of a world that is not whole, it may be the missing rank.
    found = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=(ranks[0], server))]
    )
    assert found.beside == ()


def test_a_rank_that_its_program_has_numbered_lacks_no_variable() -> None:
    """As Lightning starts its ranks: with a node, a local rank and a size, and without RANK."""
    stated = {"NODE_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "29500"}
    for arguments in ({"RANK": "0"}, {}):
        people = [
            msgspec.structs.replace(
                numbered(rank, (REDUCE, USER)),
                variables={**stated, "LOCAL_RANK": str(rank)},
                arguments={name: str(rank) for name in arguments},
            )
            for rank in range(2)
        ]
        found = live_diagnosis.diagnose_processes(
            [HostLook(host="h", now=12.0, present=tuple(people))]
        )
        assert not any(f.rule.startswith("CFG") for f in found.findings)


def test_the_number_of_a_process_on_the_first_node_is_its_rank() -> None:
    stated = {"NODE_RANK": "0", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1"}
    command = ("python", "train.py")
    assert stated_arguments([], command, stated) == {"RANK": "1"}
    for lacking in stated:
        rest = {n: v for n, v in stated.items() if n != lacking}
        assert "RANK" not in stated_arguments([], command, rest)
    for other in ({"NODE_RANK": "1"}, {"RANK": "0"}, {"LOCAL_RANK": "-1"}):
        assert "RANK" not in stated_arguments([], command, {**stated, **other})


def numbered(rank: int, frames: tuple[Frame, ...]) -> Present:
    person = look(frames, rank=rank).present[0]
    who = msgspec.structs.replace(person.member.who, index=rank, pid=100 + rank)
    variables = {
        "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "29500",
    }  # fmt: skip
    member = msgspec.structs.replace(person.member, who=who, worker=rank)
    return msgspec.structs.replace(person, member=member, variables=variables)
