"""What is remembered of one process between two looks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from statistics import median

import msgspec

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S
from allaboard.analysis.failures.root_exception import unwrap_root_exception
from allaboard.analysis.parameter_servers.task_roles import (
    AWAIT_CHIEF_OP,
    SERVER_JOBS,
    SERVER_JOIN_OP,
)
from allaboard.analysis.stacks.stack_classifier import is_same_place, trim_state_queries
from allaboard.blackbox.snapshot import BoxReading
from allaboard.coordinator.trackers.idle_groups import IdleGroups
from allaboard.coordinator.trackers.step_times import StepTimes
from allaboard.coordinator.trackers.time_shares import TimeShares
from allaboard.coordinator.trackers.traffic_rates import TrafficRates
from allaboard.facts import (
    BOX,
    Declared,
    Exit,
    Frame,
    Member,
    Pace,
    Phase,
    Recorded,
    Silence,
    Stack,
    Traced,
    Who,
)
from allaboard.facts.member import STOPPED
from allaboard.protocol.events import ProcessSampled, StackSampled, TrafficSampled
from allaboard.protocol.process_keys import split_process_key

NO_PACE = Pace()
_NO_BOX = BoxReading(phase=Phase.LAUNCHED, phase_since=0.0, round=0)
_PHASES = tuple(Phase)
"""By number."""
WINDOW = 2.0
"""Seconds over which CPU use is measured."""


GRIPPED = 3
"""Looks for which a lock that was seen to be held counts as held: on a host that is full not every look sees
the others wake up for it."""


class ProcessRecord:
    """One process; `member` is its frozen picture. What changes it goes through its methods."""

    __slots__ = (
        "_made", "_named", "_seen", "_timed", "alike", "box", "candidate", "cpu_marks", "exit", "extra_task",
        "facts", "host", "idle_groups", "interrupted", "lost", "moved_at", "pid", "predecessor_ended_at",
        "rank", "recorded", "sleeps", "stack_samples", "started", "started_at", "state", "state_since",
        "step_times", "task", "time_shares", "traces", "traffic_rates", "unanswered", "unreadable",
        "worker", "wraps",
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
        self._seen: tuple[StackSampled, Stack] | None = None
        self._named: tuple[Declared | None, int, Who] | None = None
        self.pid = pid
        self.worker = worker
        self.host = host
        self.rank = rank
        self.task = task
        self.extra_task: tuple[str, int] | None = None
        self.started = self.wraps = False
        self.started_at = at
        self.predecessor_ended_at: float | None = None
        self.box: BoxReading | None = None
        self.candidate = False
        self.state = "S"
        self.state_since = at
        self.sleeps = 0
        self.moved_at = at
        self.cpu_marks: list[tuple[float, float]] = []
        self.stack_samples: list[StackSampled] = []
        self.recorded: tuple[float, tuple[Recorded, ...]] = 0.0, ()
        self.traces: dict[tuple[str, int], Traced] = {}
        self.time_shares = TimeShares()
        # There are thousands of these before there is anything to keep in them.
        self.traffic_rates: TrafficRates | None = None
        self.step_times: StepTimes | None = None
        self.idle_groups: IdleGroups | None = None
        self._timed: tuple[tuple[float, ...], float | None] = (), None
        self.exit: Exit | None = None
        self.lost = False
        self.interrupted: float | None = None
        self.facts: dict[str, str] = {}
        self.alike = 0
        self.unanswered: tuple[Silence, ...] = ()
        self.unreadable = ""

    def add_sample(self, seen: ProcessSampled, box: BoxReading | None = None) -> bool:
        """Takes in one look, with ``box`` in place of its own where that is given; True when the process
        did anything new."""
        self._made = None
        box = box or seen.box
        if self.lost:  # its agent is back
            self.lost, self.exit = False, None
        if seen.state != self.state or seen.sleeps != self.sleeps:
            if self.state in STOPPED and seen.state not in STOPPED:
                self.stack_samples.clear()  # at one place because it was stopped: that proves nothing of it now
            # Who waits in the kernel (D) for one thing after another, as on a slow disk, gets on.
            self.state, self.state_since, self.sleeps = seen.state, seen.at, seen.sleeps
        self.cpu_marks.append((seen.at, seen.cpu))
        while len(self.cpu_marks) > 2 and self.cpu_marks[1][0] < seen.at - WINDOW:
            self.cpu_marks.pop(0)
        before, self.box = self.box, box or self.box
        moved = _marker(before) != _marker(self.box)
        if seen.state != "X" and self.box is not None:
            self.time_shares.add_times(
                seen.at,
                seen.cpu,
                self.box.inside,
                seen.allowed,
                works=has_begun_work(self.box),
                for_chief=self.box.op is not None and self.box.op.name == AWAIT_CHIEF_OP,
                stopped=self.state in STOPPED,
            )
        if box is not None and box.pace is not None:
            self.step_times = self.step_times or StepTimes()
            self.step_times.add_step_times(seen.at, box.pace, box.step)
        if box is not None and box.step and box.groups:
            self.idle_groups = self.idle_groups or IdleGroups()
            self.idle_groups.add_group_states(box.step, box.groups)
        if moved:
            self.moved_at = seen.at
            self.stack_samples.clear()
        self.candidate = seen.candidate
        self.started, self.wraps = seen.started, seen.wraps
        self.unanswered = seen.unanswered
        self.unreadable = seen.unreadable
        if seen.rank >= 0:
            self.rank = seen.rank
        if seen.beside and self.extra_task is None:
            job, _, index = seen.beside.partition(":")
            self.extra_task, self._named = (job, int(index) if index.isdecimal() else 0), None
        return moved

    def mark_exited(self, how: Exit, lost: bool = False) -> None:
        """It has ended; ``lost``: or nobody sees any more what becomes of it."""
        self._made = None
        self.exit, self.lost = how, lost

    def mark_interrupted(self, at: float) -> None:
        """Its agent was asked for the end (s). A batch system may have ended it itself a moment before."""
        self._made = None
        self.interrupted = at
        if self.exit is not None and self.exit.at >= at - SAME_CAUSE_WINDOW_S:
            self.exit = msgspec.structs.replace(self.exit, ours=True)

    def set_facts(self, facts: dict[str, str], alike: int = 0) -> None:
        """It runs with these; ``alike`` as in Member."""
        self._made = None
        self.facts, self.alike = facts, alike

    def add_stack(self, looked: StackSampled) -> None:
        """Takes in one look at its stack; only those at one place are kept together."""
        self._made = None
        if looked.recorded:
            self.recorded = looked.at, looked.recorded
            looked = msgspec.structs.replace(looked, recorded=())
        if looked.frames:
            line = trim_state_queries(looked.frames)
            fed_by = trim_state_queries(looked.fed_by)
            self.stack_samples.append(msgspec.structs.replace(looked, frames=line, fed_by=fed_by))
            del self.stack_samples[:-24]

    def add_traffic(self, event: TrafficSampled) -> None:
        """Takes in how its connections stand."""
        self._made = None
        self.traffic_rates = self.traffic_rates or TrafficRates()
        self.traffic_rates.add_flows(event.at, event.flows)

    def add_call_trace(self, traced: Traced) -> None:
        """Takes in its last calls in one group. The first difference stays: it is the evidence."""
        self._made = None
        self.traces[traced.group, traced.round] = traced

    def restart_windows(self, at: float) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._made = None
        self.cpu_marks.clear()
        self.time_shares.restart_window()
        if self.traffic_rates is not None:
            self.traffic_rates.restart_window()
        if self.step_times is not None:
            self.step_times.restart_window()
        self.stack_samples.clear()
        self.state_since = max(self.state_since, at)
        self.moved_at = at

    @property
    def has_declared(self) -> bool:
        """Whether it told a framework's init who it is."""
        return self.box is not None and self.box.declared is not None

    @property
    def job_name(self) -> str:
        """Which job of its cluster it is of."""
        return self._called(self.box.declared if self.box is not None else None).job

    @property
    def median_interval(self) -> float | None:
        """The median of its last step times (s)."""
        seen = self.box.intervals if self.box is not None else ()
        if seen is not self._timed[0]:
            self._timed = seen, median(seen) if len(seen) >= 3 else None
        return self._timed[1]

    @property
    def _seen_at(self) -> float:
        """When it was seen last, of what is left where all windows have started again."""
        return max(self.started_at, self.moved_at)

    def to_member(self, launcher: bool) -> Member:
        """The frozen picture of this process; the same one until something is new of it."""
        if self._made is None or self._made[0] is not launcher:
            self._made = launcher, self._picture(launcher)
        return self._made[1]

    def _picture(self, launcher: bool) -> Member:
        box = self.box or _NO_BOX
        declared, task, looked = box.declared, self.task, self.stack_samples
        return Member(
            who=self._called(declared),
            worker=self.worker,
            task=f"{task[0]}-{task[1]}" if task is not None else "",
            notes={**box.notes, BOX: self.unreadable} if self.unreadable else box.notes,
            phase=_PHASES[box.phase],
            started_at=self.started_at,
            after=self.predecessor_ended_at,
            phase_since=box.phase_since if box is not _NO_BOX else self.state_since,
            moved_at=self.moved_at,
            heard_at=self.cpu_marks[-1][0] if self.cpu_marks else self._seen_at,
            detail=box.detail,
            framework=declared.framework if declared is not None else "",
            probed=box is not _NO_BOX,
            candidate=self.candidate,
            launcher=launcher,
            round=box.round,
            declared=declared,
            step=box.step,
            step_at=box.step_at,
            op=box.op,
            ops=box.ops,
            groups=box.groups,
            unused=self.idle_groups.unused_groups if self.idle_groups is not None else (),
            traces=tuple(self.traces.values()) if self.traces else (),
            # What was recorded before it went on says nothing of where it stands now.
            recorded=self.recorded[1] if self.recorded[0] >= self.moved_at else (),
            os_state=self.state,
            os_state_since=self.state_since,
            cpu=self._cpu(),
            load=self.time_shares.load,
            recent_load=self.time_shares.recent_load,
            run=self.time_shares.run_load,
            pairs=self.traffic_rates.pairs if self.traffic_rates is not None else (),
            pace=self.step_times.pace if self.step_times is not None else NO_PACE,
            recent_pace=self.step_times.recent_pace if self.step_times is not None else NO_PACE,
            spent=box.spent,
            loops=box.loops,
            loss=box.loss,
            numbered=box.numbered,
            kept=box.kept,
            checks=box.checks,
            io=self._rate(lambda k: float(k.io)) if looked else 0.0,
            traffic=self._rate(lambda k: float(k.traffic)) if looked else 0.0,
            stack=self._stack() if looked else None,
            raised=unwrap_root_exception(box.raised) if box.raised else None,
            exit=self.exit,
            interrupted=self.interrupted,
            key=self.pid,
            facts=self.facts,
            alike=self.alike,
            unanswered=self.unanswered,
        )

    def _called(self, declared: Declared | None) -> Who:
        if self._named is None or self._named[0] is not declared or self._named[1] != self.rank:
            self._named = declared, self.rank, self._who(declared)
        return self._named[2]

    def _who(self, declared: Declared | None) -> Who:
        rank = self.rank
        if declared is not None and (declared.world_size != 1 or rank < 0):
            rank = declared.rank  # who believes to be alone is known by the place it was started in
        job, index = "worker", -1
        if self.task is not None:
            job, index = self.task
        elif self.extra_task is not None:
            job, index = self.extra_task
        elif declared is not None and declared.world_size > 1:
            index = declared.index
        if index < 0:
            # Its number on its host would be taken for a rank.
            unknown = -1 if split_process_key(self.pid)[0] else self.worker
            index = rank if rank >= 0 else unknown
        return Who(
            job=declared.job if declared is not None else job,
            index=index,
            rank=rank,
            host=self.host,
            pid=self.pid & 0xFFFFFFFF,
        )

    def _cpu(self) -> float:
        if len(self.stack_samples) > 1:
            return self._rate(lambda k: k.cpu)
        if len(self.cpu_marks) < 2:
            return 0.0
        (start, before), (end, after) = self.cpu_marks[0], self.cpu_marks[-1]
        return (after - before) / (end - start) if end > start else 0.0

    def _rate(self, total: Callable[[StackSampled], float]) -> float:
        if len(self.stack_samples) < 2:
            return 0.0
        first, last = self.stack_samples[0], self.stack_samples[-1]
        span = last.at - first.at
        return max(0.0, total(last) - total(first)) / span if span > 0 else 0.0

    def _stack(self) -> Stack:
        """What the looks show; worked out once until there is another one."""
        last = self.stack_samples[-1]
        if self._seen is None or self._seen[0] is not last:
            self._seen = last, self._shown(last)
        return self._seen[1]

    def _shown(self, last: StackSampled) -> Stack:
        lines = len({_leaf(k.frames) for k in self.stack_samples})
        # A loop that waits has a line or two; among few looks three lines may be three of many: of eight
        # lines, twelve looks see no more than three in one of 2,000 cases, nine in one of 120.
        wanders = lines > 3 or (lines > 2 and lines * 4 > len(self.stack_samples))
        fed_by = next((k.fed_by for k in reversed(self.stack_samples) if k.fed_by), ())
        there = list(
            takewhile(lambda k: is_same_place(last.frames, k.frames), reversed(self.stack_samples))
        )
        return Stack(
            frames=last.frames,
            taken_at=last.at,
            samples=len(self.stack_samples),
            span=last.at - self.stack_samples[0].at,
            moving=wanders or len(there) < len(self.stack_samples),
            stays=last.at - there[-1].at,
            by=last.by,
            children=last.children,
            stopped=tuple(
                (pid, last.at - _stopped_since(pid, self.stack_samples)) for pid in last.stopped
            ),
            threads=last.threads,
            others=tuple(f for f in last.others if all(f in k.others for k in self.stack_samples)),
            blocked=last.blocked,
            grip=next((k.grip for k in reversed(self.stack_samples[-GRIPPED:]) if k.grip), None),
            fed_by=fed_by,
            flows=any(not is_same_place(fed_by, k.fed_by) for k in self.stack_samples),
            asks=last.asks,
        )


def _leaf(frames: tuple[Frame, ...]) -> tuple[str, int]:
    return frames[0].file, frames[0].line


def _stopped_since(pid: int, looks: list[StackSampled]) -> float:
    """The first of these looks from which on it was stopped; the kernel does not say since when."""
    return [k.at for k in takewhile(lambda k: pid in k.stopped, reversed(looks))][-1]


def _marker(box: BoxReading | None) -> tuple[object, ...]:
    if box is None:
        return ()
    inside = box.op is not None
    return box.phase, box.round, box.step, box.ops, inside, box.raised is not None


def has_begun_work(box: BoxReading) -> bool:
    """Whether its work has begun: who trains has done a step, who serves is there."""
    job = box.declared.job if box.declared is not None else ""
    serves = job in SERVER_JOBS or (box.op is not None and box.op.name == SERVER_JOIN_OP)
    return box.phase >= (Phase.JOINED if serves else Phase.TRAINING)
