"""A job that may start again what failed, under a fake clock: who comes back, who ends a round, and when."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Declared, Frame, Outcome, Phase, Raised, Reading
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.restart.restart_policy import RestartPolicy
from allaboard.protocol.commands import Command, EndJob, KillForReplacement, RestartWorker, ShowNote
from allaboard.protocol.events import (
    GateOpened,
    ProcessExited,
    ProcessSampled,
    ResourcesMeasured,
    SnapshotTaken,
    WorkerLaunched,
)
from allaboard.rules.engine.catalogue import load_catalogue

TASKS = (("worker", 0), ("worker", 1), ("ps", 0))
CLUSTER = {"worker:0": "127.0.0.1:1", "worker:1": "127.0.0.1:2", "ps:0": "127.0.0.1:3"}


class World:
    """Two workers and a server of TensorFlow 1, or three ranks; restarts are allowed."""

    def __init__(self, tasks: tuple[tuple[str, int], ...] = TASKS, most: int = 3) -> None:
        self.clock = FakeClock()
        self.job = JobState(
            JobSettings(
                launched=3,
                host="a",
                tasks=tasks,
                policy=EndPolicy(restarts=True, stopped_after=30.0),
                restarts=RestartPolicy(allowed=True, max_restarts=most),
            ),
            self.clock.now,
            load_catalogue().entries,
            self.clock.utc,
        )
        self.tasks = tasks
        self.pids = [100, 101, 102]
        self.steps = [0, 0, 0]
        self.state = ["S", "S", "S"]
        self.gone: set[int] = set()
        self.importing: set[int] = set()
        self.joined = [1000.0, 1000.0, 1000.0]
        self.notes: list[dict[str, str]] = [{}, {}, {}]
        self.stepped = [0.0, 0.0, 0.0]
        self.before = [0, 0, 0]
        self.raised: dict[int, str] = {}
        for worker in range(3):
            self.tell(WorkerLaunched(worker=worker, pid=100 + worker, launched_at=self.clock.now))
        self.tell(GateOpened(opened_at=self.clock.now))

    def declared(self, worker: int) -> Declared:
        job, index = self.tasks[worker] if self.tasks else ("worker", worker)
        call = "tf.distribute.Server" if self.tasks else "init_process_group"
        cluster = CLUSTER if self.tasks else {}
        return Declared(
            framework="tensorflow" if self.tasks else "torch",
            call=call,
            rank=worker,
            world_size=3,
            job=job,
            index=index,
            cluster=cluster,
        )

    def tell(self, *events: Any, seconds: float = 0.0) -> list[Command]:
        now = self.clock.advance(seconds)
        for worker, steps in enumerate(self.steps):
            if steps != self.before[worker]:
                self.before[worker], self.stepped[worker] = steps, now
        looks = [
            ProcessSampled(
                pid=pid, worker=w, sampled_at=now, state=self.state[w], cpu=0.0, box=self.box(w)
            )
            for w, pid in enumerate(self.pids)
            if pid not in self.gone
        ]
        return self.job.handle(now, *events, *looks)

    def box(self, worker: int) -> BoxReading:
        if worker in self.importing:
            return BoxReading(phase=int(Phase.IMPORTING), phase_since=self.clock.now, round=0)
        return BoxReading(
            phase=int(Phase.TRAINING if self.steps[worker] else Phase.JOINED),
            phase_since=self.joined[worker],
            round=1,
            step=self.steps[worker],
            step_at=self.stepped[worker],
            notes=self.notes[worker],
            ops=self.steps[worker],
            declared=self.declared(worker),
            raised=self.error(worker),
        )

    def error(self, worker: int) -> Raised | None:
        if worker not in self.raised:
            return None
        where = Frame(file="train.py", line=79, function="train")
        return Raised(
            type="UnavailableError",
            message=self.raised[worker],
            raised_at=self.clock.now,
            where=where,
        )

    def kill(self, worker: int, signal: int = 9) -> list[Command]:
        self.steps = [s + 10 for s in self.steps]
        self.tell(seconds=1.0)
        self.gone.add(self.pids[worker])
        return self.tell(
            ProcessExited(pid=self.pids[worker], exited_at=self.clock.now, signal=signal),
            seconds=0.1,
        )

    def launch(self, worker: int) -> list[Command]:
        self.pids[worker] += 100
        self.steps[worker] = 0
        self.state[worker] = "S"
        return self.tell(
            WorkerLaunched(worker=worker, pid=self.pids[worker], launched_at=self.clock.now),
            seconds=0.1,
        )


def of(commands: list[Command], kind: type[Any]) -> list[Any]:
    return [c for c in commands if isinstance(c, kind)]


def test_a_killed_server_comes_back_alone_and_the_round_goes_on() -> None:
    world = World()
    answers = world.kill(2)
    assert of(answers, RestartWorker) == [
        RestartWorker(worker=2, reason="ps 0 was killed by SIGKILL; restart 1 of 3")
    ]
    world.importing.add(2)
    answers = world.launch(2)
    for at in range(20):
        if at == 8:
            world.importing.clear()
        answers += world.tell(seconds=0.5)
    assert of(answers, EndJob) == []
    assert [m.who.pid for m in world.job.status.view(world.clock.now).members] == [100, 101, 202]
    assert "PS001" in {f.rule for f in world.job.status.findings}
    (made,) = world.job.status.task_returns
    assert made.task == "ps-0" and made.seconds is not None
    assert world.job.status.outcome[0] is Outcome.COMPLETED


def test_what_a_snapshot_brought_back_is_measured() -> None:
    world = World()
    world.steps = [100, 100, 0]
    world.tell(seconds=1.0)
    world.steps = [110, 110, 0]
    taken = SnapshotTaken(
        taken_at=world.clock.now, number=7, step=200, bytes=8, variables=1, seconds=0.1
    )
    world.tell(taken, seconds=1.0)
    world.steps = [140, 150, 0]
    world.tell(seconds=1.0)
    world.kill(2)  # after 10 steps more of each, and 1.1 s
    members = world.job.status.view(world.clock.now).members
    (ended,) = [m.exit.ended_at for m in members if m.who.pid == 102 and m.exit is not None]
    world.importing.add(2)
    world.launch(2)
    world.importing.clear()
    world.joined[2] = world.clock.now
    world.tell(seconds=0.4)
    world.steps[1] += 1
    assert (
        of(world.tell(seconds=0.1), ShowNote) == []
    )  # the chief has not said where they came from
    world.notes[0] = {"restored": json.dumps({"number": 7, "step": 200, "when": world.clock.now})}
    notes = of(world.tell(seconds=0.5), ShowNote)
    (made,) = world.job.status.task_returns
    assert made.snapshot == pytest.approx(ended - taken.taken_at, abs=0.001)
    assert made.lost == 110  # 310 steps were done, and 200 when it was taken
    assert made.seconds is not None and made.out is not None and made.out > made.seconds
    (said,) = [n.text for n in notes]
    assert said.startswith("ps 0 is back: there again after") and "110 steps lost" in said


def test_a_snapshot_is_known_though_others_were_taken_until_it_is_told() -> None:
    world = World()
    world.steps = [100, 100, 0]
    world.tell(seconds=1.0)
    at = world.clock.now
    world.tell(
        SnapshotTaken(taken_at=at, number=7, step=200, bytes=8, variables=1, seconds=0.1),
        seconds=0.1,
    )
    world.kill(2)
    world.launch(2)
    world.joined[2] = world.clock.now
    for number in range(8, 18):
        later = SnapshotTaken(
            taken_at=world.clock.now, number=number, step=0, bytes=8, variables=1, seconds=0.1
        )
        world.steps[1] += 1
        world.tell(later, seconds=0.1)
    world.notes[0] = {"restored": json.dumps({"number": 7, "step": 200, "when": 3.0})}  # its clock
    world.tell(seconds=0.5)
    (made,) = world.job.status.task_returns
    assert made.snapshot is not None and made.lost is not None


def test_values_from_elsewhere_are_not_called_those_of_a_snapshot() -> None:
    world = World()
    world.notes[0] = {"restored": json.dumps({"number": 7, "step": 200, "when": 1.0})}  # long ago
    world.tell(
        SnapshotTaken(taken_at=world.clock.now, number=7, step=0, bytes=8, variables=1, seconds=0.1)
    )
    world.kill(2)
    world.importing.add(2)
    world.launch(2)
    world.importing.clear()
    world.joined[2] = world.clock.now
    for _ in range(20):
        world.steps[0] += 1
        world.tell(seconds=0.5)
    (made,) = world.job.status.task_returns
    assert (made.snapshot, made.lost) == (None, None) and made.out is not None


def test_why_a_snapshot_was_not_restored_is_told() -> None:
    world = World()
    world.notes[0] = {"snapshot": "not restored: number 3: long ago"}
    world.tell(
        SnapshotTaken(taken_at=world.clock.now, number=7, step=0, bytes=8, variables=1, seconds=0.1)
    )
    world.kill(2)
    world.launch(2)
    world.joined[2] = world.clock.now
    world.notes[0] = {"snapshot": "not restored: number 7: words is larger than a message may be"}
    said = []
    for _ in range(20):
        world.steps[0] += 1
        said += [n.text for n in of(world.tell(seconds=0.5), ShowNote)]
    (line,) = [text for text in said if "is back" in text]
    assert line.endswith(
        "not those of the snapshot: number 7: words is larger than a message may be"
    )


def test_who_fell_with_a_server_says_so_and_may_fall_there_again() -> None:
    world = World(most=9)
    for time in range(2):
        world.kill(2)
        world.raised[1] = (
            "recvmsg:Connection reset by peer from remote target /job:ps/replica:0/task:0"
        )
        world.tell(seconds=0.2)
        world.gone.add(world.pids[1])
        answers = world.tell(
            ProcessExited(pid=world.pids[1], exited_at=world.clock.now, code=1), seconds=0.1
        )
        (again,) = of(answers, RestartWorker)
        assert again.reason == (
            "worker 1 failed when ps 0 was lost: raised UnavailableError at train.py:79; "
            f"restart {2 * time + 2} of 9"
        )
        assert of(answers, EndJob) == []
        world.raised.clear()
        world.launch(1)
        world.launch(2)
    assert [r.fell_with for r in world.job.status.task_returns] == ["", "ps-0"] * 2


def test_the_last_restart_is_the_last() -> None:
    world = World(most=1)
    world.kill(2)
    world.launch(2)
    (end,) = of(world.kill(2), EndJob)
    assert (end.outcome, end.final) == (Outcome.FAILED, True)
    assert "1 restart used up (--max-restarts 1)" in end.reason


def test_a_stopped_server_is_put_an_end_to_and_replaced() -> None:
    world = World()
    world.state[2] = "T"
    before = [c for _ in range(29) for c in world.tell(seconds=1.0)]
    assert of(before, KillForReplacement) == [] and of(before, EndJob) == []
    after = [c for _ in range(3) for c in world.tell(seconds=1.0)]
    assert [p.pid for p in of(after, KillForReplacement)] == [102]
    world.gone.add(102)
    answers = world.tell(ProcessExited(pid=102, exited_at=world.clock.now, signal=9), seconds=0.1)
    assert of(answers, RestartWorker) == [
        RestartWorker(worker=2, reason="ps 0 was stopped for 30 s; restart 1 of 3")
    ]


def test_what_ends_when_the_work_is_done_does_not_come_back() -> None:
    world = World()
    for worker in (0, 1):
        world.gone.add(100 + worker)
        world.tell(ProcessExited(pid=100 + worker, exited_at=world.clock.now, code=0), seconds=0.1)
    assert of(world.kill(2), RestartWorker) == []


def test_a_killed_rank_of_a_collective_job_ends_the_round_at_once() -> None:
    world = World(tasks=())
    (end,) = of(world.kill(1), EndJob)
    assert end.outcome is Outcome.FAILED


def test_a_stopped_rank_ends_the_round_after_its_patience() -> None:
    world = World(tasks=())
    world.steps = [50, 50, 50]
    world.tell()
    world.state[1] = "T"
    before = [c for _ in range(29) for c in world.tell(seconds=1.0)]
    assert of(before, EndJob) == []
    after = [c for _ in range(4) for c in world.tell(seconds=1.0)]
    (end,) = of(after, EndJob)
    assert end.outcome is Outcome.HANG
    assert "worker 1 has been stopped for 30 s (--stopped-after 30)" in end.reason


def test_who_is_held_by_a_debugger_is_left_alone() -> None:
    world = World(tasks=())
    world.steps = [50, 50, 50]
    world.tell()
    world.state[1] = "t"
    assert of([c for _ in range(60) for c in world.tell(seconds=1.0)], EndJob) == []


def test_what_servers_use_is_followed_while_they_serve() -> None:
    world = World()
    reading = Reading("throttled", 1.0, 0.05, 102, "cpu.stat")
    for value in range(6):
        world.steps = [s + 1 for s in world.steps]
        world.steps[2] = 0
        told = msgspec.structs.replace(reading, value=float(value))
        world.tell(ResourcesMeasured(measured_at=world.clock.now, readings=(told,)), seconds=2.0)
    (use,) = world.job.status.view(world.clock.now).uses
    assert (use.pid, round(use.rate, 2)) == (102, 0.5)
