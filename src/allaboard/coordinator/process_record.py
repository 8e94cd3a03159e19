"""What is remembered of one process between two samples."""

from __future__ import annotations

from statistics import median

import msgspec

from allaboard.analysis.collectives.queued_calls import is_waiting_unseen
from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S
from allaboard.analysis.failures.root_exception import unwrap_root_exception
from allaboard.analysis.parameter_servers import AWAIT_CHIEF_OP, SERVER_JOBS, SERVER_JOIN_OP
from allaboard.blackbox.snapshot import BoxReading
from allaboard.coordinator.process_identity import identify_process
from allaboard.coordinator.stack_looks import MAX_LOOKS, look_from_sample
from allaboard.coordinator.trackers.idle_groups import IdleGroups
from allaboard.coordinator.trackers.loss_course import LossBlocks
from allaboard.coordinator.trackers.stack_samples import StackSamples
from allaboard.coordinator.trackers.step_times import StepTimes
from allaboard.coordinator.trackers.time_shares import TimeShares
from allaboard.coordinator.trackers.traffic_rates import TrafficRates
from allaboard.facts import Pace, Recorded, Silence, Traced, Who
from allaboard.facts.member import BOX, STOPPED, Declared, Exit, Member, Op, Phase
from allaboard.facts.stack import StackLook
from allaboard.facts.time_shares import PrintedLoss
from allaboard.protocol.events import ProcessSampled, StackSampled, TrafficSampled

_NO_PACE = Pace()
_NO_BOX = BoxReading(phase=Phase.LAUNCHED, phase_since=0.0, round=0)
_PHASES = tuple(Phase)
"""The phases by their number in the black box."""
CPU_WINDOW_S = 2.0
"""Time over which CPU use is measured."""
MAX_WAITING_CORES = 0.2
"""Cores up to which a process that is inside an operation waits there, and does not compute."""


class _SeenOp:
    """An operation in which samples found a process."""

    __slots__ = ("first_cpu", "first_seen_at", "last_cpu", "last_seen_at", "op", "step")

    def __init__(self, op: Op, step: int, seen_at: float, cpu: float) -> None:
        self.op, self.step = op, step
        self.first_seen_at = self.last_seen_at = seen_at
        self.first_cpu = self.last_cpu = cpu

    @property
    def cores(self) -> float:
        """Cores that the process used in it; 0 if there was one sample."""
        span = self.last_seen_at - self.first_seen_at
        return (self.last_cpu - self.first_cpu) / span if span > 0 else 0.0


class ProcessRecord:
    """One process of a job. `to_member` makes its frozen picture; only the methods change the record."""

    __slots__ = (
        "_interval_made", "_last_op", "_picture_made", "_who_made", "alike", "box",
        "candidate", "cpu_marks", "exit", "extra_task", "facts", "host", "idle_groups", "interrupted",
        "looks", "loss_blocks", "lost", "moved_at", "peak_rss_nbytes", "pid", "predecessor_ended_at",
        "printed_loss", "rank", "recorded", "redrawn_at", "redraws", "rss_nbytes", "sleeps", "stack_samples",
        "started", "started_at", "state", "state_since", "step_times", "task", "time_shares", "traces",
        "traffic_rates", "unanswered", "unreadable", "worker", "wraps", "wraps_python",
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
        self._who_made: tuple[Declared | None, int, Who] | None = None
        self.pid = pid
        self.worker = worker
        self.host = host
        self.rank = rank
        self.task = task
        self.extra_task: tuple[str, int] | None = None
        self.started = self.wraps = self.wraps_python = False
        self.started_at = started_at
        self.predecessor_ended_at: float | None = None
        self.box: BoxReading | None = None
        self.candidate = False
        self.state = "S"
        self.rss_nbytes = self.peak_rss_nbytes = 0
        self.state_since = started_at
        self._last_op: _SeenOp | None = None
        """The last operation that it was seen in."""
        self.sleeps = 0
        self.moved_at = started_at
        self.cpu_marks: list[tuple[float, float]] = []
        self.recorded: tuple[float, tuple[Recorded, ...]] = 0.0, ()
        self.traces: dict[tuple[str, int], Traced] = {}
        self.time_shares = TimeShares()
        # Not made before there is anything to keep in them: there are thousands of records.
        self.traffic_rates: TrafficRates | None = None
        self.step_times: StepTimes | None = None
        self.loss_blocks: LossBlocks | None = None
        self.idle_groups: IdleGroups | None = None
        self.stack_samples: StackSamples | None = None
        self.looks: tuple[StackLook, ...] = ()
        self._interval_made: tuple[tuple[float, ...], float | None] = (), None
        self.exit: Exit | None = None
        self.lost = False
        self.interrupted: float | None = None
        self.facts: dict[str, str] = {}
        self.alike = 0
        self.unanswered: tuple[Silence, ...] = ()
        self.unreadable = ""
        self.printed_loss: PrintedLoss | None = None
        self.redraws = 0
        self.redrawn_at = 0.0

    def add_sample(self, event: ProcessSampled, box: BoxReading | None = None) -> bool:
        """Take in one sample, with ``box`` in place of its own if given. Return True if the process did
        anything new."""
        self._picture_made = None
        box = box or event.box
        if self.lost:  # its agent is back
            self.lost, self.exit = False, None
        if event.state != self.state or event.sleeps != self.sleeps:
            if self.state in STOPPED and event.state not in STOPPED:
                self.stack_samples = None  # it stood there because it was stopped
            # A process that waits in the kernel (D) for one thing after another, as on a slow disk, gets on.
            self.state, self.state_since, self.sleeps = event.state, event.sampled_at, event.sleeps
        self.rss_nbytes = event.rss_nbytes
        self.peak_rss_nbytes = max(self.peak_rss_nbytes, event.rss_nbytes)
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
        if box is not None and box.op is not None:
            if self._last_op is None or self._last_op.op.since != box.op.since:
                self._last_op = _SeenOp(box.op, box.step, event.sampled_at, event.cpu)
            self._last_op.last_seen_at, self._last_op.last_cpu = event.sampled_at, event.cpu
        if box is not None and box.pace is not None:
            self.step_times = self.step_times or StepTimes()
            self.step_times.add_step_times(event.sampled_at, box.pace, box.step)
        if box is not None and box.step and box.last_loss is not None:
            self.loss_blocks = self.loss_blocks or LossBlocks()
            self.loss_blocks.add_loss(event.sampled_at, box.step, box.last_loss)
        if box is not None and box.step and box.groups:
            self.idle_groups = self.idle_groups or IdleGroups()
            self.idle_groups.add_group_states(box.step, box.groups)
        if has_moved:
            self.moved_at = event.sampled_at
            self.stack_samples = None
        self.candidate = event.candidate
        self.started, self.wraps = event.started_by_agent, event.wraps_launcher
        self.wraps_python = event.wraps_python
        self.unanswered = event.unanswered
        self.unreadable = event.box_error
        self.printed_loss = event.printed_loss
        if event.redraws > self.redraws:
            self.redrawn_at = event.sampled_at
        self.redraws = event.redraws
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
        if sample.is_look:
            self.looks = (*self.looks[1 - MAX_LOOKS :], look_from_sample(sample))
            return
        if sample.recorded:
            self.recorded = sample.sampled_at, sample.recorded
            sample = msgspec.structs.replace(sample, recorded=())
        if sample.frames:
            self.stack_samples = self.stack_samples or StackSamples()
            self.stack_samples.add_sample(sample)

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
        self.stack_samples = None
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
        samples = self.stack_samples
        pace, recent_pace, spent = _NO_PACE, _NO_PACE, box.spent
        if self.step_times is not None:
            pace, recent_pace = self.step_times.pace, self.step_times.recent_pace
        if is_waiting_unseen(declared, box.memory):
            pace = msgspec.structs.replace(pace, sync=0.0)
            recent_pace = msgspec.structs.replace(recent_pace, sync=0.0)
            spent = msgspec.structs.replace(spent, sync=0.0)
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
            wraps_python=self.wraps_python,
            launcher=launcher,
            round=box.round,
            declared=declared,
            step=box.step,
            step_at=box.step_at,
            op=box.op,
            ended_op=self._ended_op(),
            ops=box.ops,
            groups=box.groups,
            unused=self.idle_groups.unused_groups if self.idle_groups is not None else (),
            traces=tuple(self.traces.values()) if self.traces else (),
            # Collectives that were recorded before it moved on say nothing of where it stands now.
            recorded=self.recorded[1] if self.recorded[0] >= self.moved_at else (),
            os_state=self.state,
            os_state_since=self.state_since,
            cpu=self._cpu(),
            rss_nbytes=self.rss_nbytes,
            peak_rss_nbytes=self.peak_rss_nbytes,
            load=self.time_shares.load,
            recent_load=self.time_shares.recent_load,
            run=self.time_shares.run_load,
            pairs=self.traffic_rates.pairs if self.traffic_rates is not None else (),
            pace=pace,
            recent_pace=recent_pace,
            spent=spent,
            loops=box.loops,
            loss=box.loss,
            printed_loss=self.printed_loss,
            redrawn_at=self.redrawn_at,
            last_loss=box.last_loss,
            loss_course=self.loss_blocks.course if self.loss_blocks is not None else None,
            memory=box.memory,
            numbered=box.numbered,
            saves=box.kept,
            checks=box.checks,
            io=samples.rate(lambda s: float(s.io)) if samples is not None else 0.0,
            traffic=samples.rate(lambda s: float(s.traffic)) if samples is not None else 0.0,
            stack=samples.to_stack() if samples is not None else None,
            looks=self.looks,
            raised=unwrap_root_exception(box.raised) if box.raised else None,
            exit=self.exit,
            interrupted=self.interrupted,
            key=self.pid,
            facts=self.facts,
            alike=self.alike,
            unanswered=self.unanswered,
        )

    def _ended_op(self) -> tuple[Op, float] | None:
        """Return the operation in which it was last seen idle, and when, if it ended without another step.

        An interrupt leaves the operation by an exception before the process ends.
        """
        last_op = self._last_op
        if (
            self.exit is None
            or last_op is None
            or self.box is None
            or last_op.step != self.box.step
        ):
            return None
        return (last_op.op, last_op.last_seen_at) if last_op.cores < MAX_WAITING_CORES else None

    def _cached_who(self, declared: Declared | None) -> Who:
        if (
            self._who_made is None
            or self._who_made[0] is not declared
            or self._who_made[1] != self.rank
        ):
            task = self.task or self.extra_task
            identity = identify_process(self.pid, self.host, self.worker, self.rank, task, declared)
            self._who_made = declared, self.rank, identity
        return self._who_made[2]

    def _cpu(self) -> float:
        cores = self.stack_samples.cores if self.stack_samples is not None else None
        if cores is not None:
            return cores
        if len(self.cpu_marks) < 2:
            return 0.0
        (start, cpu_at_start), (end, cpu_at_end) = self.cpu_marks[0], self.cpu_marks[-1]
        return (cpu_at_end - cpu_at_start) / (end - start) if end > start else 0.0


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
