"""What may be known of a job from outside: reads of its memory, no writes. It is a `JobStatusPort`."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.member_names import name_members
from allaboard.coordinator.job_memory import JobMemory
from allaboard.coordinator.job_outcome import (
    ExitCounts,
    count_exits,
    early_leaver,
    interruption_behind_end,
)
from allaboard.coordinator.trackers.evaluation_throttle import THROTTLED_FROM_MEMBERS
from allaboard.facts import Exit, Finding, Interruption, JobView, Outcome, TaskReturn
from allaboard.protocol.commands import EndJob
from allaboard.rules.engine.relations import declared_relations


class JobStatus:
    """A read-only window on the ``memory`` of a job, always as it is now."""

    __slots__ = ("_memory",)

    def __init__(self, memory: JobMemory) -> None:
        self._memory = memory

    @property
    def opened_at(self) -> float | None:
        """Time at which the gate was opened for the first member; None before that."""
        return self._memory.gate.opened_at

    @property
    def progress_at(self) -> float:
        """Time of the last event that counts as progress."""
        return self._memory.progress_at

    @property
    def ending(self) -> EndJob | None:
        """Why and how the job is being ended, here or by the leader; None if it is not."""
        return self._memory.ending

    @property
    def interrupted_by(self) -> int:
        """Signal by which this agent was asked to end the job; 0 if it was not."""
        return self._memory.interrupted_by

    @property
    def leader_decides(self) -> bool:
        """True if the coordinator of another host decides for this one."""
        return self._memory.leader_decides

    @property
    def watches_stall(self) -> bool:
        """True while a part of the job stands still and needs more stack samples soon."""
        return self._memory.stall_detector.needs_samples_soon

    @property
    def early_open_reason(self) -> str:
        """Why the gate opens although the roll call is not complete; "" if it does not."""
        return self._memory.other_hosts.early_open_reason

    @property
    def spans_agents(self) -> bool:
        """True if other agents may have started ranks of this job."""
        return self._memory.other_hosts.joined

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of this round, oldest first, those that the leader reported among them."""
        return self._memory.findings.findings

    @property
    def task_returns(self) -> tuple[TaskReturn, ...]:
        """The tasks that were restarted alone in this round."""
        return tuple(self._memory.task_restarts.task_returns)

    @property
    def evaluations(self) -> int:
        """Number of times that the rules were run on the job so far."""
        return self._memory.throttle.evaluations

    def view(self, now: float) -> JobView:
        """Return the frozen picture of the job that rules and faces read."""
        return self._memory.view(now)

    def recent_view(self, now: float) -> JobView:
        """Return a picture for display only: that of the last evaluation if there are many members, or if the
        job goes on and it is of this moment."""
        last_view = self._memory.last_view
        if last_view is not None and last_view.now == now and self._memory.ending is None:
            return last_view
        is_cheap = len(self._memory.records) < THROTTLED_FROM_MEMBERS
        return self.view(now) if is_cheap or last_view is None else last_view

    def exit_of(self, worker: int) -> Exit | None:
        """Return how this worker of this host exited; None if it has not, or if allaboard ended it."""
        return self._memory.members.exit_of(worker)

    @property
    def interruption_behind_end(self) -> Interruption | None:
        """The interruption of another host that made this job fall; None if a member failed by itself, or
        none did."""
        ending = self._memory.ending
        return interruption_behind_end(
            self.view(self.progress_at),
            ending.outcome if ending is not None else None,
            self._exit_counts.bad,
        )

    @property
    def outcome(self) -> tuple[Outcome, str]:
        """The outcome of the job and its reason, once no process of it is left."""
        memory = self._memory
        if memory.interrupted_by:
            return Outcome.INTERRUPTED, "interrupted"
        interruption = self.interruption_behind_end
        if interruption is not None:
            return Outcome.INTERRUPTED, str(interruption)
        if memory.ending is not None:
            return memory.ending.outcome, memory.ending.reason
        counts = self._exit_counts
        if counts.bad:
            return Outcome.FAILED, f"{counts.bad} of {counts.all} workers failed"
        findings = self.findings if memory.other_hosts.joined else ()
        left_early = early_leaver(
            findings, declared_relations(memory.entries), memory.settings.host, memory.local_workers
        )
        if left_early is not None:
            return Outcome.FAILED, left_early.summary
        failed_aside = order_failures(self.view(self.progress_at)).evaluators
        suffix = f", beside {name_members(failed_aside)}, which failed" if failed_aside else ""
        return Outcome.COMPLETED, f"every worker ended with exit code 0{suffix}"

    @property
    def _exit_counts(self) -> ExitCounts:
        memory = self._memory
        # Only the leader restarts the workers of other hosts, so that their exits are counted there.
        restarts_everywhere = memory.other_hosts.leads and memory.settings.restarts.allowed
        return count_exits(memory.members.worker_exits(restarts_everywhere))
