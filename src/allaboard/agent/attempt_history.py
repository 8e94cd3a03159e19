"""The rounds of a job so far, what was found in them, and what was decided after each."""

from __future__ import annotations

import msgspec

from allaboard.facts import Finding, Interruption, Outcome, RoundEnd, RoundReport, TaskReturn
from allaboard.policy.restart.attempt_restart import (
    count_repeated_steps,
    decide_after_round,
    repeated_exception,
)
from allaboard.policy.restart.restart_policy import NoRestart, Restart, RestartPolicy


class AttemptHistory:
    """The rounds of a job so far; the outcome, reason and signal are those of the newest one."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._rounds: list[RoundEnd] = []
        self.reports: list[RoundReport] = []
        self.findings: tuple[Finding, ...] = ()
        """Findings of all rounds."""
        self.task_returns: tuple[TaskReturn, ...] = ()
        self.interrupt_signal = 0
        """Signal of the user that ended the newest round, on whichever host; 0 if there was none."""
        self.outcome = Outcome.COMPLETED
        self.reason = ""

    @property
    def recurring_failure(self) -> str:
        """Why another round would fail in the same way; "" if that is not known."""
        return repeated_exception(self._rounds) if self._rounds else ""

    @property
    def restart_count(self) -> int:
        """Number of restarts so far, of the whole job or of a single task."""
        return len(self._rounds) + len(self.task_returns)

    def add_task_returns(self, task_returns: tuple[TaskReturn, ...]) -> None:
        """Record tasks that were restarted alone within the round that has ended."""
        self.task_returns += task_returns

    def decide_next(
        self,
        attempt_end: RoundEnd,
        findings: tuple[Finding, ...],
        signal: int = 0,
        hindrance: str = "",
    ) -> Restart | NoRestart:
        """Record how a round ended, and decide whether there is another one.

        ``hindrance``: why another host cannot take part in a further round; "" if nothing prevents it.
        """
        self._rounds.append(attempt_end)
        self.findings += findings
        self.outcome, self.reason, self.interrupt_signal = (
            attempt_end.outcome,
            attempt_end.reason,
            signal,
        )
        decision = decide_after_round(self._rounds, self._policy, len(self.task_returns), hindrance)
        self.reports.append(
            RoundReport(
                **msgspec.structs.asdict(attempt_end),
                decision=decision.reason,
                again=isinstance(decision, Restart),
                delay=decision.delay if isinstance(decision, Restart) else 0.0,
                repeated=count_repeated_steps(self._rounds),
            )
        )
        return decision

    def adopt_decision(
        self,
        report: RoundReport,
        findings: tuple[Finding, ...],
        remote_interruption: Interruption | None = None,
    ) -> Restart | NoRestart:
        """Record how a round ended according to the host that decides for all, and return its decision.

        All rounds are kept, since this host may be the one that decides after the next round.
        ``remote_interruption``: the interruption on another host that ended the round here.
        """
        if report.outcome is Outcome.INTERRUPTED and remote_interruption is not None:
            report = msgspec.structs.replace(report, reason=str(remote_interruption))
        self._rounds.append(report)
        self.findings += findings
        self.outcome, self.reason, self.interrupt_signal = report.outcome, report.reason, 0
        if remote_interruption is not None:
            self.interrupt_signal = remote_interruption.signal
        self.reports.append(report)
        return (
            Restart(report.decision, report.delay) if report.again else NoRestart(report.decision)
        )

    def cut_short(self, outcome: Outcome, reason: str, signal: int = 0) -> None:
        """Record that the round that was decided on did not start after all."""
        self.outcome, self.reason, self.interrupt_signal = outcome, reason, signal
        self.reports[-1] = msgspec.structs.replace(
            self.reports[-1], decision=reason, again=False, delay=0.0
        )
