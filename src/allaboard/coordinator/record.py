"""What is remembered of one process between two looks."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from allaboard.coordinator.events import BoxReading, Exchanged, Looked, Seen, split_key
from allaboard.coordinator.paces import Paces
from allaboard.coordinator.pairs import Pairs
from allaboard.coordinator.shares import Shares
from allaboard.evidence.first_raised import first_raised
from allaboard.evidence.servers import AWAITS_CHIEF, JOINS, SERVER_JOBS
from allaboard.evidence.spot import same_place
from allaboard.facts import Exit, Frame, Member, Pace, Phase, Silence, Spent, Stack, Traced, Who

NO_PACE, NOT_SPENT = Pace(), Spent()
WINDOW = 2.0
"""Seconds over which CPU use is measured."""


class Record:
    """One process; `member` is its frozen picture. What changes it goes through its methods."""

    __slots__ = (
        "_made", "_timed", "box", "candidate", "cpu_marks", "exit", "facts", "host", "looks", "lost",
        "moved_at", "paces", "pairs", "pid", "rank", "shares", "started_at", "state", "state_since",
        "task", "traces", "unanswered", "worker",
    )  # fmt: skip

    def __init__(
        self,
        pid: int,
        worker: int,
        host: str,
        at: float,
        rank: int = -1,
        task: tuple[str, int] | None = None,
    ) -> None:
        self._made: tuple[bool, Member] | None = None
        self.pid = pid
        self.worker = worker
        self.host = host
        self.rank = rank
        self.task = task
        self.started_at = at
        self.box: BoxReading | None = None
        self.candidate = False
        self.state = "S"
        self.state_since = at
        self.moved_at = at
        self.cpu_marks: list[tuple[float, float]] = []
        self.looks: list[Looked] = []
        self.traces: dict[tuple[str, int], Traced] = {}
        self.shares = Shares()
        # There are thousands of these before there is anything to keep in them.
        self.pairs: Pairs | None = None
        self.paces: Paces | None = None
        self._timed: tuple[tuple[float, ...], float | None] = (), None
        self.exit: Exit | None = None
        self.lost = False
        self.facts: dict[str, str] = {}
        self.unanswered: tuple[Silence, ...] = ()

    def see(self, seen: Seen, box: BoxReading | None = None) -> bool:
        """Takes in one look, with ``box`` in place of its own where that is given; True when the process
        did anything new."""
        self._made = None
        box = box or seen.box
        if self.lost:  # its agent is back
            self.lost, self.exit = False, None
        if seen.state != self.state:
            self.state, self.state_since = seen.state, seen.at
        self.cpu_marks.append((seen.at, seen.cpu))
        while len(self.cpu_marks) > 2 and self.cpu_marks[1][0] < seen.at - WINDOW:
            self.cpu_marks.pop(0)
        before, self.box = self.box, box or self.box
        moved = _marker(before) != _marker(self.box)
        if seen.state != "X" and self.box is not None:
            self.shares.add(
                seen.at,
                seen.cpu,
                self.box.inside,
                seen.allowed,
                works=works(self.box),
                for_chief=self.box.op is not None and self.box.op.name == AWAITS_CHIEF,
            )
        if box is not None and box.pace is not None:
            self.paces = self.paces or Paces()
            self.paces.add(seen.at, box.pace)
        if moved:
            self.moved_at = seen.at
            self.looks.clear()
        self.candidate = seen.candidate
        self.unanswered = seen.unanswered
        if seen.rank >= 0:
            self.rank = seen.rank
        return moved

    def end(self, how: Exit, lost: bool = False) -> None:
        """It has ended; ``lost``: or nobody sees any more what becomes of it."""
        self._made = None
        self.exit, self.lost = how, lost

    def answer(self, facts: dict[str, str]) -> None:
        """It runs with these."""
        self._made = None
        self.facts = facts

    def look(self, looked: Looked) -> None:
        """Takes in one look at its stack; only those at one place are kept together."""
        self._made = None
        if looked.frames:
            self.looks.append(looked)
            del self.looks[:-12]

    def exchange(self, event: Exchanged) -> None:
        """Takes in how its connections stand."""
        self._made = None
        self.pairs = self.pairs or Pairs()
        self.pairs.take(event.at, event.flows)

    def trace(self, traced: Traced) -> None:
        """Takes in its last calls in one group. The first difference stays: it is the evidence."""
        self._made = None
        self.traces[traced.group, traced.round] = traced

    def restart_windows(self, at: float) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._made = None
        self.cpu_marks.clear()
        self.shares.clear()
        if self.pairs is not None:
            self.pairs.clear()
        if self.paces is not None:
            self.paces.clear()
        self.looks.clear()
        self.state_since = max(self.state_since, at)
        self.moved_at = at

    @property
    def declared(self) -> bool:
        """Whether it told a framework's init who it is."""
        return self.box is not None and self.box.declared is not None

    @property
    def interval(self) -> float | None:
        """The median of its last step times (s)."""
        seen = self.box.intervals if self.box is not None else ()
        if seen is not self._timed[0]:
            self._timed = seen, median(seen) if len(seen) >= 3 else None
        return self._timed[1]

    def member(self, launcher: bool) -> Member:
        """The frozen picture of this process; the same one until something is new of it."""
        if self._made is None or self._made[0] is not launcher:
            self._made = launcher, self._picture(launcher)
        return self._made[1]

    def _picture(self, launcher: bool) -> Member:
        box = self.box
        declared = box.declared if box is not None else None
        rank = declared.rank if declared is not None else self.rank
        if declared is not None and declared.world_size == 1 and self.rank >= 0:
            rank = self.rank  # who believes to be alone is known by the place it was started in
        who = Who(
            job=declared.job if declared is not None else self.task[0] if self.task else "worker",
            index=self.task[1]
            if self.task is not None
            else _index(
                declared.index if declared is not None and declared.world_size > 1 else -1,
                rank,
                self.worker,
            ),
            rank=rank,
            host=self.host,
            pid=split_key(self.pid)[1],
        )
        return Member(
            who=who,
            worker=self.worker,
            task=f"{self.task[0]}-{self.task[1]}" if self.task is not None else "",
            notes=box.notes if box is not None else {},
            phase=Phase(box.phase) if box is not None else Phase.LAUNCHED,
            started_at=self.started_at,
            phase_since=box.phase_since if box is not None else self.state_since,
            moved_at=self.moved_at,
            detail=box.detail if box is not None else "",
            framework=declared.framework if declared is not None else "",
            probed=box is not None,
            candidate=self.candidate,
            launcher=launcher,
            round=box.round if box is not None else 0,
            declared=declared,
            step=box.step if box is not None else 0,
            step_at=box.step_at if box is not None else 0.0,
            op=box.op if box is not None else None,
            ops=box.ops if box is not None else 0,
            groups=box.groups if box is not None else (),
            traces=tuple(self.traces.values()),
            os_state=self.state,
            os_state_since=self.state_since,
            cpu=self._cpu(),
            load=self.shares.load,
            run=self.shares.run,
            pairs=self.pairs.pairs if self.pairs is not None else (),
            pace=self.paces.pace if self.paces is not None else NO_PACE,
            spent=box.spent if box is not None else NOT_SPENT,
            loops=box.loops if box is not None else (),
            loss=box.loss if box is not None else None,
            numbered=box.numbered if box is not None else None,
            kept=box.kept if box is not None else None,
            checks=box.checks if box is not None else (),
            io=self._rate(lambda k: float(k.io)),
            traffic=self._rate(lambda k: float(k.traffic)),
            stack=self._stack(),
            raised=first_raised(box.raised) if box is not None and box.raised else None,
            exit=self.exit,
            key=self.pid,
            facts=self.facts,
            unanswered=self.unanswered,
        )

    def _cpu(self) -> float:
        if len(self.looks) > 1:
            return self._rate(lambda k: k.cpu)
        if len(self.cpu_marks) < 2:
            return 0.0
        (start, before), (end, after) = self.cpu_marks[0], self.cpu_marks[-1]
        return (after - before) / (end - start) if end > start else 0.0

    def _rate(self, total: Callable[[Looked], float]) -> float:
        if len(self.looks) < 2:
            return 0.0
        first, last = self.looks[0], self.looks[-1]
        span = last.at - first.at
        return max(0.0, total(last) - total(first)) / span if span > 0 else 0.0

    def _stack(self) -> Stack | None:
        if not self.looks:
            return None
        last = self.looks[-1]
        lines = len({_leaf(k.frames) for k in self.looks})
        # A loop that waits has a line or two; among few looks three lines may be three of many.
        wanders = lines > 3 or (lines > 2 and lines * 3 > len(self.looks))
        moving = wanders or any(not same_place(last.frames, k.frames) for k in self.looks)
        return Stack(
            frames=last.frames,
            taken_at=last.at,
            samples=len(self.looks),
            span=last.at - self.looks[0].at,
            moving=moving,
            by=last.by,
            children=last.children,
            threads=last.threads,
            blocked=last.blocked,
            grip=last.grip,
        )


def _leaf(frames: tuple[Frame, ...]) -> tuple[str, int]:
    return frames[0].file, frames[0].line


def _marker(box: BoxReading | None) -> tuple[object, ...]:
    if box is None:
        return ()
    inside = box.op is not None
    return box.phase, box.round, box.step, box.ops, inside, box.raised is not None


def works(box: BoxReading) -> bool:
    """Whether its work has begun: who trains has done a step, who serves is there."""
    job = box.declared.job if box.declared is not None else ""
    serves = job in SERVER_JOBS or (box.op is not None and box.op.name == JOINS)
    return box.phase >= (Phase.JOINED if serves else Phase.TRAINING)


def _index(declared: int, rank: int, worker: int) -> int:
    return declared if declared >= 0 else rank if rank >= 0 else worker
