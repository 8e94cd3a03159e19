"""Seeded traces of synchronous training jobs, as agents would report them. See simulate.py.

All ranks step together (all-reduce equalises step times). What a trace draws from its seed: the
median step (0.02 to 5 s, log-uniform) and its jitter (2 to 30 %), what ranks wait in (a collective, or
the backward pass of DDP), the moment and the rank of the fault. Faults and healthy incidents are the
functions below; each says what a rank looks like to its agent at a time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from allaboard.coordinator.events import BoxReading, Event, Exited, Locks, Looked, Seen
from allaboard.facts import Frame, LockWait, Op, Phase, Raised
from allaboard.facts.samples import REDUCE, USER, declared

LIB = "/v/lib/python3.11/site-packages/"
BACKWARD = Frame(LIB + "torch/autograd/graph.py", 824, "_engine_run_backward")
SPIN = Frame("/home/u/train.py", 33, "wait_for_flag", "while not flag.is_set():")
SLEEP = Frame("/home/u/train.py", 36, "retry", "time.sleep(3600)")
LOADER = Frame(LIB + "torch/utils/data/dataloader.py", 1288, "_try_get_data")
LOCK = Frame("/home/u/data.py", 12, "load", "fcntl.flock(f, fcntl.LOCK_EX)")
SAVE = Frame(LIB + "torch/serialization.py", 900, "save")
LEAVES = [Frame("/home/u/train.py", 60 + n, "evaluate", "score += f(x)") for n in range(8)]
PHASES = [Frame("/home/u/train.py", 80 + n, name, "") for n, name in enumerate(("a", "b", "c"))]
FAULTS = {
    "stopped": ("HANG001",),
    "killed": ("EXIT001",),
    "exception": ("EXIT002",),
    "spinning": ("HANG002",),
    "asleep": ("HANG005",),
    "data loader": ("HANG003",),
    "file lock": ("HANG004",),
    "left early": ("EXIT004",),
}
"""Each fault, and the rules any of which names it rightly."""
INCIDENTS = ("none", "checkpoint", "evaluation", "compilation", "short stall", "drift", "straggler")
"""What happens to healthy jobs."""
TICK = 0.5
"""Seconds between two reports, as the agent's while a job trains."""


@dataclass
class Trace:
    """One job of ``ranks`` ranks with one fault, or one incident of a healthy job."""

    seed: int
    ranks: int
    kind: str
    draw: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draw = random.Random(f"{self.seed} {self.ranks} {self.kind}")
        self.step = math.exp(self.draw.uniform(math.log(0.02), math.log(5.0)))
        self.jitter = self.draw.uniform(0.02, 0.3)
        self.backward = self.draw.random() < 0.5
        self.guilty = self.draw.randrange(self.ranks)
        self.rhythm = max(1.0, self.step)
        self.begins = 12 * self.rhythm + self.draw.uniform(0.0, 3.0)
        self.pause = self._pause()
        self.falls = self.draw.random() < 0.5
        self.seconds = self.begins + (60.0 if self.faulty else self.pause + 12 * self.rhythm)
        self.declared = [declared(r, self.ranks) for r in range(self.ranks)]
        self.done = 0
        self.next_step = 0.0
        self.last: list[float] = []
        self.dead: set[int] = set()

    @property
    def faulty(self) -> bool:
        return self.kind in FAULTS

    def _pause(self) -> float:
        longest = {"checkpoint": 60.0, "evaluation": 60.0, "compilation": 30.0}
        if self.kind == "short stall":
            return self.draw.uniform(0.5, 0.9) * max(3.0, 6.0 * self.step)
        return self.draw.uniform(4.0, longest.get(self.kind, 4.0))

    def halted(self, at: float) -> bool:
        """Whether no rank can take a step at this time (s from the start of training)."""
        if self.kind in ("none", "drift", "straggler") or at < self.begins:
            return False
        return self.faulty or at < self.begins + self.pause

    def advance(self, at: float) -> None:
        """Counts the steps done until this time."""
        while self.next_step <= at and not self.halted(self.next_step):
            length = self.step * max(0.2, self.draw.gauss(1.0, self.jitter))
            if self.kind == "drift":
                length *= 1.0 + self.next_step / 60.0
            if self.kind == "straggler":
                length *= 1.8 if self.next_step > self.begins else 1.0
            self.last = [*self.last[-4:], length]
            self.done += 1
            self.next_step += length
        if self.halted(at):
            self.next_step = max(self.next_step, at)

    def looks(self, now: float, at: float) -> Iterator[Event]:
        """What the agents report at this time; ``now`` is the same on the clock of the job."""
        self.advance(at)
        hit = at >= self.begins and self.faulty
        if self.kind == "file lock" and hit:
            yield Locks(waits=(LockWait(waiter=100 + self.guilty, holders=(7,), path="/d/lock"),))
        for rank in range(self.ranks):
            if rank in self.dead:
                continue
            end = self._end(rank, now, at) if hit else None
            yield self._seen(rank, now, at)
            if end is not None:
                self.dead.add(rank)
                yield end

    def _seen(self, rank: int, now: float, at: float) -> Seen:
        waits = self._waits(rank, at)
        stopped = self.kind == "stopped" and rank == self.guilty and at >= self.begins
        busy = 0.0 if waits or stopped else self._busy(rank, at)
        raised = None
        if self.faulty and at >= self.begins and self._fell(rank, at):
            raised = self._raised(rank, now)
        op = Op(self._op, self.done, now) if waits else None
        if op is not None and self.halted(at):
            op = Op(self._op, self.done, now - (at - self.begins))
        return Seen(
            pid=100 + rank,
            worker=rank,
            at=now,
            state="T" if stopped else "R" if busy else "S",
            cpu=at * busy,
            box=BoxReading(
                phase=int(Phase.TRAINING),
                phase_since=now - at,
                round=1,
                declared=self.declared[rank],
                step=self.done,
                step_at=now,
                intervals=tuple(self.last),
                ops=self.done,
                op=op,
                raised=raised,
            ),
        )

    @property
    def _op(self) -> str:
        return "DDP backward" if self.backward else "all_reduce"

    def _alone(self, rank: int) -> bool:
        """Whether this is the rank that is elsewhere while the others wait."""
        return rank == (0 if self.kind in ("checkpoint", "evaluation") else self.guilty)

    def _waits(self, rank: int, at: float) -> bool:
        if not self.halted(at):
            return self.draw.random() < 0.3
        if self.kind == "short stall":
            return True
        return self.kind != "compilation" and not self._alone(rank)

    def _busy(self, rank: int, at: float) -> float:
        if not self.halted(at):
            return 0.9
        idle = ("asleep", "data loader", "file lock", "checkpoint")
        return 0.05 if self.kind in idle else 0.98

    def _fell(self, rank: int, at: float) -> bool:
        if self.kind == "exception" and rank == self.guilty:
            return True
        ends = self.kind in ("killed", "exception", "left early")
        return ends and rank != self.guilty and self.falls and at >= self.begins + 1.0

    def _raised(self, rank: int, now: float) -> Raised:
        if rank == self.guilty:
            return Raised(type="ValueError", message="bad sample", at=now, where=USER)
        return Raised(
            type="DistBackendError", message="Connection closed by peer", at=now, where=USER
        )

    def _end(self, rank: int, now: float, at: float) -> Exited | None:
        pid = 100 + rank
        if rank == self.guilty:
            if self.kind == "killed":
                return Exited(pid=pid, at=now, signal=9)
            if self.kind in ("exception", "left early"):
                return Exited(pid=pid, at=now, code=1 if self.kind == "exception" else 0)
            return None
        return Exited(pid=pid, at=now, code=1) if self._fell(rank, at) else None

    def stack(self, pid: int, now: float, at: float) -> Looked:
        """A look at one process."""
        rank = pid - 100
        busy = 0.0 if self._waits(rank, at) else self._busy(rank, at)
        moves = self.kind == "checkpoint" and self._alone(rank)
        return Looked(
            pid=pid,
            at=now,
            frames=self._frames(rank, at),
            by="faulthandler",
            cpu=at * busy,
            io=int(at * 5e7) if moves else 0,
        )

    def _frames(self, rank: int, at: float) -> tuple[Frame, ...]:
        if not self.halted(at):
            return (self.draw.choice(PHASES), USER)
        if self.kind == "compilation":
            return (BACKWARD, self.draw.choice(LEAVES), USER)
        if self.kind == "short stall" or not self._alone(rank):
            return (BACKWARD if self.backward else REDUCE, USER)
        return {
            "spinning": (SPIN, USER),
            "asleep": (SLEEP, USER),
            "data loader": (LOADER, USER),
            "file lock": (LOCK, USER),
            "checkpoint": (SAVE, USER),
            "evaluation": (self.draw.choice(LEAVES), USER),
        }.get(self.kind, (USER,))
