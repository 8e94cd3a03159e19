"""The tasks of this round that are restarted alone: how they ended, what is to be done, and how they came
back."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.analysis.parameter_servers import (
    AUXILIARY_JOBS,
    SERVER_JOBS,
    task_name,
    training_members,
)
from allaboard.coordinator.trackers.server_downtime import (
    ServerDowntime,
    restore_failures,
    restored_snapshots,
)
from allaboard.coordinator.trackers.step_history import StepHistory
from allaboard.facts import Cause, Exit, JobView, Member, Outcome, Phase, Setback, TaskReturn, Who
from allaboard.policy.restart.attempt_summary import describe_end
from allaboard.policy.restart.failure_attribution import EndedTask, find_lost_task
from allaboard.policy.restart.restart_policy import Restart, RestartPolicy
from allaboard.policy.restart.task_restart import TaskEnd, can_restart_alone, decide_after_task
from allaboard.protocol.commands import EndJob, KillForReplacement, RestartWorker, ShowNote
from allaboard.protocol.events import SnapshotTaken

RESTORE_REPORT_S = 3.0
"""Time after the first step in which the chief reports from where the values came: other members may be
quicker."""

MAX_SNAPSHOTS = 100
"""Snapshots whose times are remembered: at most ten are taken a second."""


class TaskRestarts:
    """Decides on restarts of single tasks. ``used`` restarts were made in the rounds before; a task that is
    stopped is replaced after ``stopped_after`` (s)."""

    def __init__(self, policy: RestartPolicy, stopped_after: float, used: int) -> None:
        self._policy = policy
        self._stopped_after = stopped_after
        self._used_before = used
        self._ends: dict[int, list[TaskEnd]] = {}
        """Worker to its ends in this round."""
        self._handled: set[int] = set()
        """Processes on whose ends it was decided."""
        self._kill_reasons: dict[int, str] = {}
        self._downtimes: dict[int, ServerDowntime] = {}
        """Worker to its downtime, until it is back."""
        self._step_history = StepHistory()
        self._snapshots: dict[int, SnapshotTaken] = {}
        self._ended_tasks: list[EndedTask] = []
        self.task_returns: list[TaskReturn] = []
        self.awaited_workers: set[int] = set()
        """Workers that were restarted and whose new process has not been seen."""

    def kill_reason(self, pid: int) -> str:
        """Return why the process was killed in order to replace it ("was stopped for 30 s"); "" if it was
        not."""
        return self._kill_reasons.get(pid, "")

    @property
    def _used(self) -> int:
        """Restarts so far, in this round and before."""
        return self._used_before + len(self.task_returns)

    @property
    def restore_source(self) -> str:
        """The source of the values of a server that is lost now: "snapshot" or "checkpoint"; "" if it is not
        restarted."""
        if not self._policy.allowed or self._used >= self._policy.max_restarts:
            return ""
        return "snapshot" if self._snapshots else "checkpoint"

    def add_snapshot(self, event: SnapshotTaken) -> None:
        """Remember a snapshot. Only the newest one is restored, but that is reported a moment later, and
        others may be taken meanwhile. The process that takes them may be restarted, and then numbers them
        from 1."""
        self._snapshots.pop(event.number, None)
        self._snapshots[event.number] = event
        for number in list(self._snapshots)[:-MAX_SNAPSHOTS]:
            del self._snapshots[number]

    def next_commands(
        self, view: JobView, dropped_steps: int
    ) -> Iterator[RestartWorker | KillForReplacement | EndJob | ShowNote]:
        """Yield what is to be done now; ``dropped_steps`` were made by processes that were replaced."""
        if not self._policy.allowed or view.ending:
            return
        steps = dropped_steps + sum(m.step for m in training_members(view))
        self._step_history.add_total(view.now, steps)
        # A member that raised may have done so because another task was lost: that one is handled first.
        for member in sorted(view.members, key=lambda m: m.raised is not None):
            if member.event_key in self._handled or not can_restart_alone(view, member):
                continue
            if member.exit is not None and (
                has_failed(member) or self.kill_reason(member.event_key)
            ):
                self._handled.add(member.event_key)
                if any(
                    m.alive or m.exit is None or m.exit.code != 0 for m in training_members(view)
                ):
                    yield self._command_after_end(view, member, member.exit, steps)
            elif self._is_stopped_too_long(view, member):
                seconds = view.now - member.os_state_since
                reason = f"was stopped for {seconds:.0f} s"
                self._kill_reasons[member.event_key] = reason
                yield KillForReplacement(
                    pid=member.event_key, reason=f"{task_name(member)} {reason}"
                )
        yield from self._report_returns(view)

    def _is_stopped_too_long(self, view: JobView, member: Member) -> bool:
        seconds = view.now - member.os_state_since
        is_stopped = member.alive and member.os_state == "T" and seconds >= self._stopped_after
        return is_stopped and not self.kill_reason(member.event_key)

    def _command_after_end(
        self, view: JobView, member: Member, process_exit: Exit, steps: int
    ) -> RestartWorker | EndJob:
        cause, lost_task = self._cause_of_end(member)
        self._ended_tasks.append(EndedTask(member.who, process_exit.ended_at))
        ends = self._ends.setdefault(member.worker, [])
        ends.append(TaskEnd(cause=cause, total_steps=steps))
        decision = decide_after_task(ends, self._used, self._policy)
        if not isinstance(decision, Restart):
            return EndJob(outcome=Outcome.FAILED, reason=decision.reason, final=True)
        self._downtimes[member.worker] = ServerDowntime(
            ended_at=process_exit.ended_at,
            return_index=len(self.task_returns),
            steps=steps,
            is_server=member.who.job in SERVER_JOBS,
            earlier_notes=frozenset((*restored_snapshots(view), *restore_failures(view))),
        )
        self.awaited_workers.add(member.worker)
        self.task_returns.append(
            TaskReturn(
                task=member.task or f"{member.who.job}-{member.who.index}",
                cause=str(cause),
                decision=decision.reason,
                fell_with=f"{lost_task.job}-{lost_task.index}" if lost_task is not None else "",
            )
        )
        return RestartWorker(worker=member.worker, reason=decision.reason, delay=decision.delay)

    def _cause_of_end(self, member: Member) -> tuple[Cause, Who | None]:
        """Return the cause, and the task whose end made this one end too; None if there is none."""
        cause = describe_end(member)
        if kill_reason := self.kill_reason(member.event_key):
            return Cause(who=task_name(member), what=kill_reason, steps=member.step), None
        lost_task = find_lost_task(member, self._ended_tasks)
        if lost_task is not None:
            # Without a place: the line is not to blame, and may raise again when that task is lost again.
            description = f"failed when {lost_task.name} was lost: {cause.what}"
            cause = Cause(who=cause.who, what=description, steps=cause.steps)
        return cause, lost_task

    def note_rollback(self, rollback: Setback) -> None:
        """Count the steps by which the training went back as lost with the last of the tasks that ended
        before."""
        tasks = {f"{w.job}-{w.index}" for w in rollback.who}
        for index in range(len(self.task_returns) - 1, -1, -1):
            task_return = self.task_returns[index]
            if task_return.task in tasks:
                self.task_returns[index] = msgspec.structs.replace(task_return, lost=rollback.lost)
                return

    def _report_returns(self, view: JobView) -> Iterator[ShowNote]:
        """Report the tasks that are back: that have joined the cluster, or, for an evaluator, which joins
        none, have imported the framework. A server is back when a trainer makes a step."""
        for member in view.members:
            downtime = self._downtimes.get(member.worker)
            is_auxiliary = member.who.job in AUXILIARY_JOBS
            back_phase = Phase.IMPORTED if is_auxiliary else Phase.JOINED
            if downtime is None or not member.alive or member.phase < back_phase:
                continue
            task_return = self.task_returns[downtime.return_index]
            if task_return.seconds is None:
                seconds = round(member.phase_since - downtime.ended_at, 3)
                task_return = msgspec.structs.replace(task_return, seconds=seconds)
            if downtime.is_server:
                task_return = self._measure_recovery(view, member, downtime, task_return)
            self.task_returns[downtime.return_index] = task_return
            if downtime.is_server:
                if not self._is_measured(view, downtime, task_return):
                    continue
                why = downtime.restore_failure(view) if task_return.snapshot is None else ""
                suffix = f"; its values are not those of the snapshot: {why}" if why else ""
                text = f"{task_name(member)} is back: {task_return.recovery}{suffix}"
                yield ShowNote(text=text)
            del self._downtimes[member.worker]

    def _is_measured(
        self, view: JobView, downtime: ServerDowntime, task_return: TaskReturn
    ) -> bool:
        """Return True if all is known of the return of a server, or the chief had its time to report it."""
        if task_return.out is None:
            return False
        if task_return.snapshot is not None or not self._snapshots:
            return True
        return view.now - downtime.ended_at - task_return.out >= RESTORE_REPORT_S

    def _measure_recovery(
        self, view: JobView, member: Member, downtime: ServerDowntime, task_return: TaskReturn
    ) -> TaskReturn:
        """Return what is known of the return of a server: the first step after it, and from where its values
        came."""
        if task_return.out is None:
            steps_at = [m.step_at for m in training_members(view) if m.alive]
            steps_after = [step_at for step_at in steps_at if step_at > member.phase_since]
            if not steps_after:
                return task_return
            out = round(min(steps_after) - downtime.ended_at, 3)
            task_return = msgspec.structs.replace(task_return, out=out)
        return downtime.with_restored_snapshot(
            view, task_return, self._snapshots, self._step_history
        )
