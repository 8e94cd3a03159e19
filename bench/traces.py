"""Seeded traces of synchronous training jobs, as agents would report them. See simulate.py.

All ranks step together (all-reduce equalises step times). What a trace draws from its seed: the
median step (0.02 to 5 s, log-uniform; to 1 s where medians of many steps are compared) and its jitter (2 to
30 %), what ranks wait in (a collective, or the backward pass of DDP), the moment and the rank of the fault.
Faults and healthy incidents are the functions below; each says what a rank looks like to its agent at a time.
What a box shows beside its steps is in shown.py, with its settings.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import shown

from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import Frame, LockWait, Loop, Op, Pace, Phase, Raised, Signature
from allaboard.facts.samples import REDUCE, USER, sample_declaration
from allaboard.protocol.events import CallsTraced as CallsTold
from allaboard.protocol.events import (
    Event,
    LockWaitsSampled,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    StackSampled,
)

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
    "swapped calls": ("NUM004",),
    "uneven batches": ("DATA001", "HANG009"),
    "slow link": ("SLOW007",),
    "slow port": ("SLOW007",),
    "input-bound": ("SLOW002",),
}
"""Each fault, and the rules any of which names it rightly."""
INCIDENTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "checkpoint": (),
    "evaluation": (),
    "compilation": (),
    "short stall": (),
    "periodic stalls": (),
    "drift": (),
    "straggler": ("SLOW001",),
    "calls at own lines": (),
    "calls in turn": (),
    "uneven, Join": (),
    "uneven evaluation": (),
    "slow host": ("SLOW001",),
    "slow network": (),
    "much input": (),
}
"""What happens to jobs that do not fail, and the warnings that are true of it; no other may be given."""
MEDIANS = (
    "straggler",
    "slow link",
    "slow port",
    "input-bound",
    "slow host",
    "slow network",
    "much input",
)
"""Kinds that show in medians of many steps, ..."""
LONGEST = 1.0
"""... whose median step (s) is no longer than that, so that a trace has enough of them."""
HOSTS = ("slow link", "slow port", "slow host", "slow network")
"""Kinds whose ranks are on several hosts."""
GOES_ON = (*MEDIANS, "none", "drift", "swapped calls", "calls at own lines", "calls in turn")
"""Kinds in which no step is missed."""
AHEAD = 8
"""Times that ranks have called in order, at the least, before two calls are swapped."""
FEWER = 1, 3
"""Batches that one rank has less, where they are uneven."""
PERIOD = 3
"""A stall that comes again does so after so many times its own length."""
TICK, SOON = 0.5, 0.25
"""Seconds between two reports, as the agent's while a job trains, and while it stands still."""


@dataclass
class Trace:
    """One job of ``ranks`` ranks with one fault, or one incident of a healthy job."""

    seed: int
    ranks: int
    kind: str
    draw: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draw = random.Random(f"{self.seed} {self.ranks} {self.kind}")
        longest = LONGEST if self.kind in MEDIANS else 5.0
        self.step = math.exp(self.draw.uniform(math.log(0.02), math.log(longest)))
        self.jitter = self.draw.uniform(0.02, 0.3)
        self.backward = self.draw.random() < 0.5
        self.guilty = self.draw.randrange(self.ranks)
        if self.kind in ("swapped calls", "calls at own lines", "calls in turn"):
            self.backward = False  # there are no two calls to tell apart in it
        self.rhythm = max(1.0, self.step)
        self.begins = 12 * self.rhythm + self.draw.uniform(0.0, 3.0)
        self.pause = self._pause()
        self.falls = self.draw.random() < 0.5
        self.seconds = self.begins + (60.0 if self.faulty else self.pause + 12 * self.rhythm)
        if self.kind == "periodic stalls":
            self.seconds = self.begins + 8 * PERIOD * self.pause
        if self.kind in MEDIANS:
            self.seconds = self.begins + 40.0 + shown.LAST * 4 * self.step
        self.fewer = self.draw.randint(*FEWER)
        self.calls = shown.Calls(self.ranks, self.backward)
        self.paces = shown.Paces(self.step, self.draw, self.ranks)
        self.ring = shown.Ring(self.ranks, self.draw)
        share = shown.STARVED if self.kind == "input-bound" else shown.HALF
        self.starved = self.draw.uniform(*share)
        self.longer = self.draw.uniform(*shown.SLOW_LINK)
        self.before = 0
        self.since = 0.0
        self.pids = {self.pid(r): r for r in range(self.ranks)}
        self.declared = [sample_declaration(r, self.ranks) for r in range(self.ranks)]
        self.done = 0
        self.next_step = 0.0
        self.last: list[float] = []
        self.dead: set[int] = set()

    @property
    def faulty(self) -> bool:
        return self.kind in FAULTS

    @property
    def names(self) -> frozenset[int]:
        """The ranks of which a right finding names some, and no others."""
        host = self.guilty // shown.HOST
        if self.kind == "slow link":
            there = (host + 1) % self.ring.hosts
            return frozenset(r for r in range(self.ranks) if r // shown.HOST in (host, there))
        if self.kind == "slow port":
            return frozenset(r for r in range(self.ranks) if r // shown.HOST == host)
        if self.kind == "input-bound":
            return frozenset(range(self.ranks))
        return frozenset((self.guilty,))

    def pid(self, rank: int) -> int:
        """What events and commands call the process of this rank."""
        return shown.pid_of(rank) if self.kind in HOSTS else 100 + rank

    def _pause(self) -> float:
        longest = {"checkpoint": 60.0, "evaluation": 60.0, "compilation": 30.0, "uneven, Join": 30.0,
                   "uneven evaluation": 30.0}  # fmt: skip
        if self.kind in ("short stall", "periodic stalls"):
            return self.draw.uniform(0.5, 0.9) * max(3.0, 6.0 * self.step)
        return self.draw.uniform(4.0, longest.get(self.kind, 4.0))

    def halted(self, at: float) -> bool:
        """Whether no rank can take a step at this time (s from the start of training)."""
        if self.kind in GOES_ON or at < self.begins:
            return False
        if self.kind == "periodic stalls":  # a disk that is flushed, a collector of garbage
            return (at - self.begins) % (PERIOD * self.pause) < self.pause
        return self.faulty or at < self.begins + self.pause

    def advance(self, at: float) -> None:
        """Counts the steps done until this time."""
        while self.next_step <= at and not self.halted(self.next_step):
            length = self.step * max(0.2, self.draw.gauss(1.0, self.jitter))
            if self.kind == "drift":
                length *= 1.0 + self.next_step / 60.0
            if self.next_step > self.begins:
                length *= self._slower()
            self.last = [*self.last[-4:], length]
            self.done += 1
            self.since = self.next_step
            self.before += self.next_step < self.begins
            self.next_step += length
        if self.halted(at):
            self.next_step = max(self.next_step, at)

    def _slower(self) -> float:
        """How many times as long as usual a step takes once it has begun."""
        if self.kind in ("straggler", "slow host"):
            return 1.0 + shown.SLOWER
        if self.kind in ("input-bound", "much input"):
            return 1.0 / (1.0 - self.starved)
        return self.longer if self.kind in ("slow link", "slow port", "slow network") else 1.0

    def answers(self) -> Iterator[Event]:
        """What members run with, as they say it once."""
        if self.kind in HOSTS:
            for rank in range(self.ranks):
                address = shown.address_of(rank // shown.HOST)
                yield MemberFactsReported(pid=self.pid(rank), facts={"data address": address})

    def looks(self, now: float, at: float) -> Iterator[Event]:
        """What the agents report at this time; ``now`` is the same on the clock of the job."""
        self.advance(at)
        if self.kind in HOSTS and at % 1.0 < TICK:
            yield from self.ring.looks(now, self._full(at), self.step)
        hit = at >= self.begins and self.faulty
        if self.kind == "file lock" and hit:
            wait = LockWait(waiter=self.pid(self.guilty), holders=(7,), path="/d/lock")
            yield LockWaitsSampled(waits=(wait,))
        for rank in range(self.ranks):
            if rank in self.dead:
                continue
            end = self._end(rank, now, at) if hit else None
            yield self._seen(rank, now, at)
            if end is not None:
                self.dead.add(rank)
                yield end

    def _seen(self, rank: int, now: float, at: float) -> ProcessSampled:
        waits = self._waits(rank, at)
        stopped = self.kind == "stopped" and rank == self.guilty and at >= self.begins
        busy = 0.0 if waits or stopped else self._busy(rank, at)
        raised = None
        if self.faulty and at >= self.begins and self._fell(rank, at):
            raised = self._raised(rank, now)
        inside, number = self._number(rank, at)
        since = 0.0
        if self.halted(at):
            since = at - self.begins
            if self.kind == "periodic stalls":
                since %= PERIOD * self.pause
        op = Op(self._op, self.done, now - since, "0", number if inside else 0) if waits else None
        hosts = self.kind in HOSTS
        local = rank % shown.HOST if hosts else rank
        return ProcessSampled(
            pid=self.pid(rank),
            worker=(rank // shown.HOST << 12) + local if hosts else rank,
            host=shown.host_of(rank) if hosts and rank >= shown.HOST else "",
            rank=rank if hosts else -1,
            sampled_at=now,
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
                ops=number,
                op=op,
                raised=raised,
                inside=at * 0.1,
                groups=self.calls.state(
                    self._kind(rank),
                    number,
                    now - since,
                    partial(self._call, rank),
                    self._flagged(at),
                ),
                pace=self._pace(rank, at),
                loops=self._loops(rank, at),
            ),
        )

    def _number(self, rank: int, at: float) -> tuple[bool, int]:
        """Whether it is inside a call that is counted, and how many it has made."""
        every = len(self.calls.step)
        made = self.done * every
        if not self.halted(at):
            return True, made  # within a step: the number that most looks find
        alone = self._alone(rank) and self.kind not in ("short stall", "periodic stalls")
        busy = alone or self.kind == "compilation"
        if self.kind == "uneven batches":
            return True, made + 1
        return (False, made) if busy else (True, made + 1)

    def _kind(self, rank: int) -> str:
        """The ranks of one kind make the same calls."""
        if self.kind == "calls in turn":
            return str(rank % 3)
        apart = ("swapped calls", "uneven batches", "calls at own lines")
        return "odd" if self.kind in apart and rank == self._odd else ""

    @property
    def _odd(self) -> int:
        return 0 if self.kind == "calls at own lines" else self.guilty

    def _call(self, rank: int, number: int) -> Signature:
        """The call of this number (from 0) as this rank makes it."""
        calls = self.calls.step
        at = number % len(calls)
        step = number // len(calls)
        odd = rank == self._odd
        if self.kind == "swapped calls" and odd and step == max(AHEAD, self.before):
            return calls[1 - at]
        if self.kind == "calls at own lines" and odd and at == 0:
            return shown.OWN
        if self.kind == "calls in turn" and rank % 3 == step % 3:
            return calls[1 - at]
        if self.kind == "uneven batches" and odd and step == self.before:
            return shown.AFTER
        return calls[at]

    def _flagged(self, at: float) -> int:
        """From which call on their order proves nothing: under Join they are those of a shadow."""
        return 1 if self.kind == "uneven, Join" else 0

    def _loops(self, rank: int, at: float) -> tuple[Loop, ...]:
        few = rank == self.guilty
        if self.kind == "uneven batches":
            few = few and self.halted(at)
            return shown.batches(self.done, self.done if few else 0)
        if self.kind in ("uneven, Join", "uneven evaluation"):
            if at < self.begins:
                return shown.batches(self.done)
            return shown.batches(0, self.before + self.fewer - (self.fewer if few else 0))
        return shown.batches(self.done)

    def _pace(self, rank: int, at: float) -> Pace | None:
        """The medians of its last steps: they change when half of these are others."""
        others, data = shown.OTHERS
        begun = self.done - self.before >= min(shown.LAST, self.done) / 2 and at >= self.begins
        step = self.step * (self._slower() if begun else 1.0)
        if begun:
            others, data = self._shares(rank)
        return self.paces.of(rank, at, self.done, step, others, data)

    def _shares(self, rank: int) -> tuple[float, float]:
        """Shares of a step that it waits for others and for data, once the fault or incident is there."""
        others, data = shown.OTHERS
        longer = self._slower()
        if self.kind in ("straggler", "slow host"):
            same = rank // shown.HOST == self.guilty // shown.HOST
            slow = same if self.kind == "slow host" else rank == self.guilty
            return (others if slow else others + longer - 1.0) / longer, data / longer
        if self.kind in ("input-bound", "much input"):
            return others / longer, self.starved + data / longer
        return (others + longer - 1.0) / longer, data / longer

    def _full(self, at: float) -> set[int]:
        """Hosts that send over a link which does not keep up."""
        host = self.guilty // shown.HOST
        if at < self.begins:
            return set()
        if self.kind == "slow network":
            return set(range(self.ring.hosts))
        if self.kind == "slow port":
            return {host, (host - 1) % self.ring.hosts}
        return {host} if self.kind == "slow link" else set()

    @property
    def _op(self) -> str:
        return "DDP backward" if self.backward else "all_reduce"

    def _alone(self, rank: int) -> bool:
        """Whether this is the rank that is elsewhere while the others wait."""
        first = ("checkpoint", "evaluation", "uneven, Join", "uneven evaluation")
        return rank == (0 if self.kind in first else self.guilty)

    def _waits(self, rank: int, at: float) -> bool:
        if not self.halted(at):
            return self.draw.random() < 0.3
        if self.kind in ("short stall", "periodic stalls", "uneven batches"):
            return True
        return self.kind != "compilation" and not self._alone(rank)

    def _busy(self, rank: int, at: float) -> float:
        if not self.halted(at):
            return 0.9
        idle = (
            "asleep",
            "data loader",
            "file lock",
            "checkpoint",
            "uneven, Join",
            "uneven evaluation",
        )
        return 0.05 if self.kind in idle else 0.98

    def _fell(self, rank: int, at: float) -> bool:
        if self.kind == "exception" and rank == self.guilty:
            return True
        ends = self.kind in ("killed", "exception", "left early")
        return ends and rank != self.guilty and self.falls and at >= self.begins + 1.0

    def _raised(self, rank: int, now: float) -> Raised:
        if rank == self.guilty:
            return Raised(type="ValueError", message="bad sample", raised_at=now, where=USER)
        return Raised(
            type="DistBackendError", message="Connection closed by peer", raised_at=now, where=USER
        )

    def _end(self, rank: int, now: float, at: float) -> ProcessExited | None:
        pid = self.pid(rank)
        if rank == self.guilty:
            if self.kind == "killed":
                return ProcessExited(pid=pid, exited_at=now, signal=9)
            if self.kind in ("exception", "left early"):
                return ProcessExited(
                    pid=pid, exited_at=now, code=1 if self.kind == "exception" else 0
                )
            return None
        return ProcessExited(pid=pid, exited_at=now, code=1) if self._fell(rank, at) else None

    def trace(self, pid: int, at: float) -> CallsTold:
        """The last calls of one process."""
        rank = self.pids[pid]
        return CallsTold(
            pid=pid, traced=self.calls.traced(self._kind(rank), self._number(rank, at)[1])
        )

    def stack(self, pid: int, now: float, at: float) -> StackSampled:
        """A look at one process."""
        rank = self.pids[pid]
        busy = 0.0 if self._waits(rank, at) else self._busy(rank, at)
        saves = ("checkpoint", "uneven, Join", "uneven evaluation")
        moves = self.kind in saves and self._alone(rank)
        return StackSampled(
            pid=pid,
            sampled_at=now,
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
        if self.kind == "uneven batches" and rank == self.guilty:
            return (REDUCE, Frame("/home/u/train.py", 60, "train", "reduce_metric()"))
        if self.kind in ("short stall", "periodic stalls") or not self._alone(rank):
            return (BACKWARD if self.backward else REDUCE, USER)
        return {
            "spinning": (SPIN, USER),
            "asleep": (SLEEP, USER),
            "data loader": (LOADER, USER),
            "file lock": (LOCK, USER),
            "checkpoint": (SAVE, USER),
            "uneven, Join": (SAVE, USER),
            "uneven evaluation": (SAVE, USER),
            "evaluation": (self.draw.choice(LEAVES), USER),
        }.get(self.kind, (USER,))
