"""What is remembered of one process between two samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from statistics import median

import msgspec

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S
from allaboard.analysis.failures.root_exception import unwrap_root_exception
from allaboard.analysis.parameter_servers import (
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

_NO_PACE = Pace()
_NO_BOX = BoxReading(phase=Phase.LAUNCHED, phase_since=0.0, round=0)
_PHASES = tuple(Phase)
"""The phases by their number in the black box."""
CPU_WINDOW_S = 2.0
"""Time over which CPU use is measured."""
MAX_STACK_SAMPLES = 24
"""Samples at one place that are kept."""


HELD_LOCK_SAMPLES = 3
"""Samples for which a lock that was seen to be held counts as held: on a host that is full not every sample
shows how the other threads wake up for it."""


class ProcessRecord:
    """One process of a job. `to_member` makes its frozen picture; only the methods change the record."""

    __slots__ = (
        "_interval_made", "_picture_made", "_shown_stack", "_who_made", "alike", "box", "candidate",
        "cpu_marks", "exit", "extra_task", "facts", "host", "idle_groups", "interrupted", "lost",
        "moved_at", "pid", "predecessor_ended_at", "rank", "recorded", "sleeps", "stack_samples", "started",
        "started_at", "state", "state_since", "step_times", "task", "time_shares", "traces",
        "traffic_rates", "unanswered", "unreadable", "worker", "wraps",
    )  # fmt: skip

    def __init__(
        self,
        pid: int,
        worker: int,
        host: str,
        started_at: float,
        rank: int = -1,
        task: tuple[str, int] | None = None,
    ) -> None:
        self._picture_made: tuple[bool, Member] | None = None
        self._shown_stack: tuple[StackSampled, Stack] | None = None
        self._who_made: tuple[Declared | None, int, Who] | None = None
        self.pid = pid
        self.worker = worker
        self.host = host
        self.rank = rank
        self.task = task
        self.extra_task: tuple[str, int] | None = None
        self.started = self.wraps = False
        self.started_at = started_at
        self.predecessor_ended_at: float | None = None
        self.box: BoxReading | None = None
        self.candidate = False
        self.state = "S"
        self.state_since = started_at
        self.sleeps = 0
        self.moved_at = started_at
        self.cpu_marks: list[tuple[float, float]] = []
        self.stack_samples: list[StackSampled] = []
        self.recorded: tuple[float, tuple[Recorded, ...]] = 0.0, ()
        self.traces: dict[tuple[str, int], Traced] = {}
        self.time_shares = TimeShares()
        # Not made before there is anything to keep in them: there are thousands of records.
        self.traffic_rates: TrafficRates | None = None
        self.step_times: StepTimes | None = None
        self.idle_groups: IdleGroups | None = None
        self._interval_made: tuple[tuple[float, ...], float | None] = (), None
        self.exit: Exit | None = None
        self.lost = False
        self.interrupted: float | None = None
        self.facts: dict[str, str] = {}
        self.alike = 0
        self.unanswered: tuple[Silence, ...] = ()
        self.unreadable = ""

    def add_sample(self, event: ProcessSampled, box: BoxReading | None = None) -> bool:
        """Take in one sample, with ``box`` in place of its own if given. Return True if the process did
        anything new."""
        self._picture_made = None
        box = box or event.box
        if self.lost:  # its agent is back
            self.lost, self.exit = False, None
        if event.state != self.state or event.sleeps != self.sleeps:
            if self.state in STOPPED and event.state not in STOPPED:
                self.stack_samples.clear()  # it stood there because it was stopped
            # A process that waits in the kernel (D) for one thing after another, as on a slow disk, gets on.
            self.state, self.state_since, self.sleeps = event.state, event.sampled_at, event.sleeps
        self.cpu_marks.append((event.sampled_at, event.cpu))
        while len(self.cpu_marks) > 2 and self.cpu_marks[1][0] < event.sampled_at - CPU_WINDOW_S:
            self.cpu_marks.pop(0)
        previous_box, self.box = self.box, box or self.box
        has_moved = _progress_marker(previous_box) != _progress_marker(self.box)
        if event.state != "X" and self.box is not None:
            self.time_shares.add_times(
                event.sampled_at,
                event.cpu,
                self.box.inside,
                event.allowed_cores,
                works=has_begun_work(self.box),
                for_chief=self.box.op is not None and self.box.op.name == AWAIT_CHIEF_OP,
                stopped=self.state in STOPPED,
            )
        if box is not None and box.pace is not None:
            self.step_times = self.step_times or StepTimes()
            self.step_times.add_step_times(event.sampled_at, box.pace, box.step)
        if box is not None and box.step and box.groups:
            self.idle_groups = self.idle_groups or IdleGroups()
            self.idle_groups.add_group_states(box.step, box.groups)
        if has_moved:
            self.moved_at = event.sampled_at
            self.stack_samples.clear()
        self.candidate = event.candidate
        self.started, self.wraps = event.started_by_agent, event.wraps_launcher
        self.unanswered = event.unanswered
        self.unreadable = event.box_error
        if event.rank >= 0:
            self.rank = event.rank
        if event.extra_task and self.extra_task is None:
            job, _, index = event.extra_task.partition(":")
            self.extra_task, self._who_made = (job, int(index) if index.isdecimal() else 0), None
        return has_moved

    def mark_exited(self, process_exit: Exit, lost: bool = False) -> None:
        """Note that the process has exited, or, if ``lost``, that nothing is seen of it any more."""
        self._picture_made = None
        self.exit, self.lost = process_exit, lost

    def mark_interrupted(self, interrupted_at: float) -> None:
        """Note that its agent was asked at ``interrupted_at`` (s) to end the job. A batch system may have
        ended the process itself a moment before."""
        self._picture_made = None
        self.interrupted = interrupted_at
        if self.exit is not None and self.exit.ended_at >= interrupted_at - SAME_CAUSE_WINDOW_S:
            self.exit = msgspec.structs.replace(self.exit, ours=True)

    def set_facts(self, facts: dict[str, str], alike: int = 0) -> None:
        """Note what it runs with; ``alike`` is the number that members with equal facts share, as in
        Member."""
        self._picture_made = None
        self.facts, self.alike = facts, alike

    def add_stack(self, sample: StackSampled) -> None:
        """Take in one sample of its stack. Only samples since it last moved are kept."""
        self._picture_made = None
        if sample.recorded:
            self.recorded = sample.sampled_at, sample.recorded
            sample = msgspec.structs.replace(sample, recorded=())
        if sample.frames:
            frames = trim_state_queries(sample.frames)
            input_frames = trim_state_queries(sample.input_frames)
            self.stack_samples.append(
                msgspec.structs.replace(sample, frames=frames, input_frames=input_frames)
            )
            del self.stack_samples[:-MAX_STACK_SAMPLES]

    def add_traffic(self, event: TrafficSampled) -> None:
        """Take in the state of its connections."""
        self._picture_made = None
        self.traffic_rates = self.traffic_rates or TrafficRates()
        self.traffic_rates.add_flows(event.sampled_at, event.flows)

    def add_call_trace(self, traced: Traced) -> None:
        """Take in its last calls in one group: the first difference between members is the evidence."""
        self._picture_made = None
        self.traces[traced.group, traced.round] = traced

    def restart_windows(self, slept_until: float) -> None:
        """Forget what was measured, since the agent was not scheduled for a while until ``slept_until``
        (s)."""
        self._picture_made = None
        self.cpu_marks.clear()
        self.time_shares.restart_window()
        if self.traffic_rates is not None:
            self.traffic_rates.restart_window()
        if self.step_times is not None:
            self.step_times.restart_window()
        self.stack_samples.clear()
        self.state_since = max(self.state_since, slept_until)
        self.moved_at = slept_until

    @property
    def has_declared(self) -> bool:
        """True if it declared its rank to a framework's init."""
        return self.box is not None and self.box.declared is not None

    @property
    def job_name(self) -> str:
        """The job of its cluster that it belongs to ("worker", "ps", ...)."""
        return self._cached_who(self.box.declared if self.box is not None else None).job

    @property
    def median_interval(self) -> float | None:
        """The median of its last step times (s); None before three steps."""
        intervals = self.box.intervals if self.box is not None else ()
        if intervals is not self._interval_made[0]:
            self._interval_made = intervals, median(intervals) if len(intervals) >= 3 else None
        return self._interval_made[1]

    @property
    def _least_sampled_at(self) -> float:
        """When it was sampled at the earliest, if the times of its samples have been forgotten."""
        return max(self.started_at, self.moved_at)

    def to_member(self, launcher: bool) -> Member:
        """Return the frozen picture of this process: the same object until something new is known."""
        if self._picture_made is None or self._picture_made[0] is not launcher:
            self._picture_made = launcher, self._picture(launcher)
        return self._picture_made[1]

    def _picture(self, launcher: bool) -> Member:
        box = self.box or _NO_BOX
        declared, task = box.declared, self.task
        has_samples = bool(self.stack_samples)
        return Member(
            who=self._cached_who(declared),
            worker=self.worker,
            task=f"{task[0]}-{task[1]}" if task is not None else "",
            notes={**box.notes, BOX: self.unreadable} if self.unreadable else box.notes,
            phase=_PHASES[box.phase],
            started_at=self.started_at,
            predecessor_ended_at=self.predecessor_ended_at,
            phase_since=box.phase_since if box is not _NO_BOX else self.state_since,
            moved_at=self.moved_at,
            heard_at=self.cpu_marks[-1][0] if self.cpu_marks else self._least_sampled_at,
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
            # Collectives that were recorded before it moved on say nothing of where it stands now.
            recorded=self.recorded[1] if self.recorded[0] >= self.moved_at else (),
            os_state=self.state,
            os_state_since=self.state_since,
            cpu=self._cpu(),
            load=self.time_shares.load,
            recent_load=self.time_shares.recent_load,
            run=self.time_shares.run_load,
            pairs=self.traffic_rates.pairs if self.traffic_rates is not None else (),
            pace=self.step_times.pace if self.step_times is not None else _NO_PACE,
            recent_pace=self.step_times.recent_pace if self.step_times is not None else _NO_PACE,
            spent=box.spent,
            loops=box.loops,
            loss=box.loss,
            numbered=box.numbered,
            saves=box.kept,
            checks=box.checks,
            io=self._rate(lambda sample: float(sample.io)) if has_samples else 0.0,
            traffic=self._rate(lambda sample: float(sample.traffic)) if has_samples else 0.0,
            stack=self._stack() if has_samples else None,
            raised=unwrap_root_exception(box.raised) if box.raised else None,
            exit=self.exit,
            interrupted=self.interrupted,
            key=self.pid,
            facts=self.facts,
            alike=self.alike,
            unanswered=self.unanswered,
        )

    def _cached_who(self, declared: Declared | None) -> Who:
        if (
            self._who_made is None
            or self._who_made[0] is not declared
            or self._who_made[1] != self.rank
        ):
            self._who_made = declared, self.rank, self._who(declared)
        return self._who_made[2]

    def _who(self, declared: Declared | None) -> Who:
        rank = self.rank
        if declared is not None and (declared.world_size != 1 or rank < 0):
            # A process that takes itself to be alone keeps the rank of its environment.
            rank = declared.rank
        job, index = "worker", -1
        if self.task is not None:
            job, index = self.task
        elif self.extra_task is not None:
            job, index = self.extra_task
        elif declared is not None and declared.world_size > 1:
            index = declared.index
        if index < 0:
            # On another host, the worker's number would be taken for a rank.
            fallback = -1 if split_process_key(self.pid)[0] else self.worker
            index = rank if rank >= 0 else fallback
        return Who(
            job=declared.job if declared is not None else job,
            index=index,
            rank=rank,
            host=self.host,
            # Without the number of the agent, which a process on another host has above its pid:
            # see `process_keys`.
            pid=self.pid & 0xFFFFFFFF,
        )

    def _cpu(self) -> float:
        if len(self.stack_samples) > 1:
            return self._rate(lambda sample: sample.cpu)
        if len(self.cpu_marks) < 2:
            return 0.0
        (start, cpu_at_start), (end, cpu_at_end) = self.cpu_marks[0], self.cpu_marks[-1]
        return (cpu_at_end - cpu_at_start) / (end - start) if end > start else 0.0

    def _rate(self, total: Callable[[StackSampled], float]) -> float:
        if len(self.stack_samples) < 2:
            return 0.0
        oldest, newest = self.stack_samples[0], self.stack_samples[-1]
        span = newest.sampled_at - oldest.sampled_at
        return max(0.0, total(newest) - total(oldest)) / span if span > 0 else 0.0

    def _stack(self) -> Stack:
        """Return what the samples show; worked out once until there is another one."""
        newest = self.stack_samples[-1]
        if self._shown_stack is None or self._shown_stack[0] is not newest:
            self._shown_stack = newest, self._stack_of_samples(newest)
        return self._shown_stack[1]

    def _stack_of_samples(self, newest: StackSampled) -> Stack:
        samples = self.stack_samples
        lines = len({_innermost_line(s.frames) for s in samples})
        # A loop that waits has a line or two. Among few samples three lines may be three of many: of eight
        # lines, twelve samples show no more than three in one of 2,000 cases, nine in one of 120.
        is_wandering = lines > 3 or (lines > 2 and lines * 4 > len(samples))
        input_frames = next((s.input_frames for s in reversed(samples) if s.input_frames), ())
        at_same_place = list(
            takewhile(lambda s: is_same_place(newest.frames, s.frames), reversed(samples))
        )
        held_locks = (s.grip for s in reversed(samples[-HELD_LOCK_SAMPLES:]) if s.grip)
        return Stack(
            frames=newest.frames,
            taken_at=newest.sampled_at,
            samples=len(samples),
            span=newest.sampled_at - samples[0].sampled_at,
            moving=is_wandering or len(at_same_place) < len(samples),
            stays=newest.sampled_at - at_same_place[-1].sampled_at,
            by=newest.by,
            children=newest.children,
            stopped=tuple(
                (pid, newest.sampled_at - _stopped_since(pid, samples)) for pid in newest.stopped
            ),
            threads=newest.threads,
            other_thread_frames=tuple(
                f for f in newest.other_threads if all(f in s.other_threads for s in samples)
            ),
            blocked=newest.blocked_call,
            grip=next(held_locks, None),
            fed_by=input_frames,
            flows=any(not is_same_place(input_frames, s.input_frames) for s in samples),
            asks=newest.asks_other_process,
        )


def _innermost_line(frames: tuple[Frame, ...]) -> tuple[str, int]:
    return frames[0].file, frames[0].line


def _stopped_since(pid: int, samples: list[StackSampled]) -> float:
    """Return the time of the first sample from which on the process was stopped: the kernel does not say
    since when it is."""
    return [s.sampled_at for s in takewhile(lambda s: pid in s.stopped, reversed(samples))][-1]


def _progress_marker(box: BoxReading | None) -> tuple[object, ...]:
    """Return a value that changes with every progress of the process."""
    if box is None:
        return ()
    is_in_op = box.op is not None
    return box.phase, box.round, box.step, box.ops, is_in_op, box.raised is not None


def has_begun_work(box: BoxReading) -> bool:
    """Return True if the process has begun its work: a trainer has made a step, a server is there."""
    job = box.declared.job if box.declared is not None else ""
    serves = job in SERVER_JOBS or (box.op is not None and box.op.name == SERVER_JOIN_OP)
    return box.phase >= (Phase.JOINED if serves else Phase.TRAINING)
