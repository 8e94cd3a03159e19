"""How an attempt ended: by its workers here, by the user, or as the host decided that decides for all."""

from __future__ import annotations

from allaboard.agent.control_plane import ControlPlane
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.contracts import Clock
from allaboard.facts import Interruption, Outcome, RoundEnd
from allaboard.policy.restart.attempt_summary import summarize_round
from allaboard.protocol.commands import ConcludeRound
from allaboard.protocol.job_state_port import JobStatePort


class AttemptEnd:
    """Judges how one attempt ended. ``round_`` is its number, from 0."""

    def __init__(
        self,
        round_: int,
        job: JobStatePort,
        workers: WorkerProcesses,
        control_plane: ControlPlane,
        clock: Clock,
    ) -> None:
        self._round = round_
        self._job = job
        self._workers = workers
        self._control_plane = control_plane
        self._clock = clock
        self.interrupt_signal = 0
        """Signal with which the user ended the job on this host, or 0."""

    @property
    def leader_decision(self) -> ConcludeRound | None:
        """Conclusion of this round by the host that decides for all; None if this host decides."""
        restart = self._control_plane.multi_host_restart
        if restart is None or self.interrupt_signal:
            return None
        return restart.leader_decision

    @property
    def ending_signal(self) -> int:
        """Signal with which the user ended the job, on this host or another one; 0 if nobody did."""
        interruption = self.remote_interruption
        return self.interrupt_signal if interruption is None else interruption.signal

    @property
    def remote_interruption(self) -> Interruption | None:
        """The interruption on another host that ended the job here, or None."""
        return None if self.interrupt_signal else self._job.status.interruption_behind_end

    @property
    def restart_hindrance(self) -> str:
        """Why a host cannot take part in a further round; "" if nothing prevents it."""
        restart = self._control_plane.multi_host_restart
        return restart.restart_hindrance() if restart is not None else ""

    @property
    def is_orphaned(self) -> bool:
        """True if the host that decides for all was lost before it reported how the job ended."""
        return (
            self._control_plane.multi_host_restart is not None
            and self._control_plane.multi_host_restart.is_orphaned
        )

    @property
    def plain_outcome(self) -> tuple[Outcome, str]:
        """Outcome and reason by the exits of the workers here alone, for a job that cannot be judged."""
        if self.interrupt_signal:
            return Outcome.INTERRUPTED, "interrupted"
        if self._workers.has_failure or self._workers.failed_to_start:
            return Outcome.FAILED, "a worker failed"
        return Outcome.COMPLETED, "all workers have finished"

    def summarize(self) -> RoundEnd:
        """Return how this round ended. To be called after `Attempt.close`."""
        outcome, reason = self._job.status.outcome
        if self.interrupt_signal:
            outcome, reason = Outcome.INTERRUPTED, "interrupted"
        elif self._workers.failed_to_start and outcome is not Outcome.INTERRUPTED:
            outcome, reason = Outcome.FAILED, "a worker could not be started"
        view = self._job.status.view(self._clock.monotonic())
        codes = tuple(dict.fromkeys(f.rule for f in self._job.status.findings))
        ending = self._job.status.ending
        final = ending is not None and ending.final
        return summarize_round(self._round, view, outcome, reason, codes, final)

    @property
    def is_good(self) -> bool:
        """True if all workers ended by themselves; only then may processes that they detached go on."""
        if (
            self.interrupt_signal
            or self._workers.failed_to_start
            or self._job.status.ending is not None
        ):
            return False
        is_completed_elsewhere = (
            self.leader_decision is None or self.leader_decision.report.outcome is Outcome.COMPLETED
        )
        return is_completed_elsewhere and self._job.status.outcome[0] is Outcome.COMPLETED
