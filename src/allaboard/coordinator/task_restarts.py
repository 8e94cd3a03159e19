"""The tasks of this round that come back alone: what is remembered of their ends, and what is due."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.analysis.parameter_servers.task_roles import (
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
from allaboard.facts import Cause, Exit, JobView, Member, Outcome, Phase, Setback, TaskReturn
from allaboard.policy.restart.attempt_summary import describe_end
from allaboard.policy.restart.failure_attribution import EndedTask, find_lost_task
from allaboard.policy.restart.restart_policy import Restart, RestartPolicy
from allaboard.policy.restart.task_restart import TaskEnd, can_restart_alone, decide_after_task
from allaboard.protocol.commands import EndJob, KillForReplacement, RestartWorker, ShowNote
from allaboard.protocol.events import SnapshotTaken

TELLS = 3.0
"""Seconds after the first step in which the chief has told where the values came from: others may be
quicker."""

REMEMBERED = 100
"""Snapshots whose times are kept in mind: ten are taken a second at the most."""


class TaskRestarts:
    """``used`` restarts were made in the rounds before; a task that is stopped is replaced after
    ``stopped_after`` s."""

    def __init__(self, policy: RestartPolicy, stopped_after: float, used: int) -> None:
        self._policy = policy
        self._stopped_after = stopped_after
        self._before = used
        self._ends: dict[int, list[TaskEnd]] = {}
        self._seen: set[int] = set()
        self._evicted: dict[int, str] = {}
        self._out: dict[int, ServerDowntime] = {}
        self._tally = StepHistory()
        self._kept: dict[int, SnapshotTaken] = {}
        self._gone: list[EndedTask] = []
        self.task_returns: list[TaskReturn] = []
        self.awaited_workers: set[int] = set()
        """Workers of which another process is to be seen next."""

    def kill_reason(self, pid: int) -> str:
        """Why it was ended, to be replaced ("was stopped for 30 s"); "" where it was not."""
        return self._evicted.get(pid, "")

    @property
    def restore_source(self) -> str:
        """From what a server comes back that is lost now; "" where it does not."""
        if (
            not self._policy.allowed
            or self._before + len(self.task_returns) >= self._policy.max_restarts
        ):
            return ""
        return "snapshot" if self._kept else "checkpoint"

    def add_snapshot(self, event: SnapshotTaken) -> None:
        """A snapshot was taken. Only the newest one is restored, but that is told a moment later, and others
        may be taken meanwhile. Who takes them may begin anew, and then count from 1."""
        self._kept.pop(event.number, None)
        self._kept[event.number] = event
        for number in list(self._kept)[:-REMEMBERED]:
            del self._kept[number]

    def next_commands(
        self, view: JobView, done: int
    ) -> Iterator[RestartWorker | KillForReplacement | EndJob | ShowNote]:
        """What is to be done now; ``done`` steps were made by processes that are gone and replaced."""
        if not self._policy.allowed or view.ending:
            return
        steps = done + sum(m.step for m in training_members(view))
        self._tally.add_total(view.now, steps)
        # Who fell with another is asked about after that other one.
        for member in sorted(view.members, key=lambda m: m.raised is not None):
            if member.called in self._seen or not can_restart_alone(view, member):
                continue
            if member.exit is not None and (has_failed(member) or self.kill_reason(member.called)):
                self._seen.add(member.called)
                if any(
                    m.alive or m.exit is None or m.exit.code != 0 for m in training_members(view)
                ):
                    yield self._ended(view, member, member.exit, steps)
            elif self._stopped(view, member):
                since = view.now - member.os_state_since
                self._evicted[member.called] = f"was stopped for {since:.0f} s"
                yield KillForReplacement(
                    pid=member.called, text=f"{task_name(member)} {self._evicted[member.called]}"
                )
        yield from self._back(view)

    def _stopped(self, view: JobView, member: Member) -> bool:
        since = view.now - member.os_state_since
        stopped = member.alive and member.os_state == "T" and since >= self._stopped_after
        return stopped and not self.kill_reason(member.called)

    def _ended(
        self, view: JobView, member: Member, end: Exit, steps: int
    ) -> RestartWorker | EndJob:
        why, other = describe_end(member), None
        if self.kill_reason(member.called):
            why = Cause(who=task_name(member), what=self._evicted[member.called], steps=member.step)
        elif (other := find_lost_task(member, self._gone)) is not None:
            # No place: the line is not to blame, and may be met again when that other one is lost again.
            why = Cause(who=why.who, what=f"fell with {other.name}: {why.what}", steps=why.steps)
        self._gone.append(EndedTask(member.who, end.at))
        ends = self._ends.setdefault(member.worker, [])
        ends.append(TaskEnd(cause=why, total_steps=steps))
        answer = decide_after_task(ends, self._before + len(self.task_returns), self._policy)
        if not isinstance(answer, Restart):
            return EndJob(outcome=Outcome.FAILED, reason=answer.reason, final=True)
        self._out[member.worker] = ServerDowntime(
            ended_at=end.at,
            return_index=len(self.task_returns),
            steps=steps,
            is_server=member.who.job in SERVER_JOBS,
            earlier_notes=frozenset((*restored_snapshots(view), *restore_failures(view))),
        )
        self.awaited_workers.add(member.worker)
        self.task_returns.append(
            TaskReturn(
                task=member.task or f"{member.who.job}-{member.who.index}",
                cause=str(why),
                decision=answer.reason,
                fell_with=f"{other.job}-{other.index}" if other is not None else "",
            )
        )
        return RestartWorker(worker=member.worker, reason=answer.reason, delay=answer.delay)

    def note_rollback(self, back: Setback) -> None:
        """The training went back: the steps are lost with the last of those who ended before."""
        tasks = {f"{w.job}-{w.index}" for w in back.who}
        for at in range(len(self.task_returns) - 1, -1, -1):
            if self.task_returns[at].task in tasks:
                self.task_returns[at] = msgspec.structs.replace(
                    self.task_returns[at], lost=back.lost
                )
                return

    def _back(self, view: JobView) -> Iterator[ShowNote]:
        """Who is there again: it has told its framework who it is; an evaluator, which tells nobody, has
        imported it. Of a server: when somebody trains."""
        for member in view.members:
            out = self._out.get(member.worker)
            there = Phase.IMPORTED if member.who.job in AUXILIARY_JOBS else Phase.JOINED
            if out is None or not member.alive or member.phase < there:
                continue
            made = self.task_returns[out.return_index]
            if made.seconds is None:
                seconds = round(member.phase_since - out.ended_at, 3)
                made = self.task_returns[out.return_index] = msgspec.structs.replace(
                    made, seconds=seconds
                )
            if out.is_server:
                made = self.task_returns[out.return_index] = self._measured(view, member, out, made)
                told_so = made.snapshot is not None or not self._kept
                if made.out is None or (not told_so and view.now - out.ended_at - made.out < TELLS):
                    continue
                why = out.restore_failure(view) if made.snapshot is None else ""
                hindered = f"; its values are not those of the snapshot: {why}" if why else ""
                yield ShowNote(text=f"{task_name(member)} is back: {made.recovery}{hindered}")
            del self._out[member.worker]

    def _measured(
        self, view: JobView, member: Member, out: ServerDowntime, made: TaskReturn
    ) -> TaskReturn:
        """The return of a server as far as it has come: the first step after it, and from where its values
        came."""
        if made.out is None:
            again = [m.step_at for m in training_members(view) if m.alive]
            after = [at for at in again if at > member.phase_since]
            if not after:
                return made
            made = msgspec.structs.replace(made, out=round(min(after) - out.ended_at, 3))
        return out.with_restored_snapshot(view, made, self._kept, self._tally)
