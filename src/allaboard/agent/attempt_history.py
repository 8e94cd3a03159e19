"""The rounds of a job so far, what was found in them, and what was decided after each."""

from __future__ import annotations

import msgspec

from allaboard.facts import Finding, Interruption, Outcome, RoundEnd, RoundReport, TaskReturn
from allaboard.policy.restart.attempt_restart import count_repeated_steps, decide_after_round
from allaboard.policy.restart.restart_policy import Again, Restarts, Stop


class AttemptHistory:
    """``signal`` is the user's, on whichever host, 0 where there was none; ``findings`` are those of all
    rounds."""

    def __init__(self, policy: Restarts) -> None:
        self._policy = policy
        self._rounds: list[RoundEnd] = []
        self.reports: list[RoundReport] = []
        self.findings: tuple[Finding, ...] = ()
        self.task_returns: tuple[TaskReturn, ...] = ()
        self.interrupt_signal = 0
        self.outcome = Outcome.COMPLETED
        self.reason = ""

    @property
    def restart_count(self) -> int:
        """How often all, or a task alone, were started again."""
        return len(self._rounds) + len(self.task_returns)

    def decide_next(
        self,
        attempt_end: RoundEnd,
        findings: tuple[Finding, ...],
        signal: int = 0,
        hindrance: str = "",
    ) -> Again | Stop:
        """Takes in how a round went; says what is done now. ``hindrance``: why another host cannot
        take part in a further round."""
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
                again=isinstance(decision, Again),
                delay=decision.delay if isinstance(decision, Again) else 0.0,
                repeated=count_repeated_steps(self._rounds),
            )
        )
        return decision

    def adopt_decision(
        self,
        report: RoundReport,
        findings: tuple[Finding, ...],
        remote_interruption: Interruption | None = None,
    ) -> Again | Stop:
        """Takes in how a round went as the host that decides for all has told it. Should this host decide
        after the next one, it knows all rounds. ``elsewhere``: the interruption with which it ended here."""
        if report.outcome is Outcome.INTERRUPTED and remote_interruption is not None:
            report = msgspec.structs.replace(report, reason=str(remote_interruption))
        self._rounds.append(report)
        self.findings += findings
        self.outcome, self.reason, self.interrupt_signal = report.outcome, report.reason, 0
        if remote_interruption is not None:
            self.interrupt_signal = remote_interruption.signal
        self.reports.append(report)
        return Again(report.decision, report.delay) if report.again else Stop(report.decision)

    def cut_short(self, outcome: Outcome, reason: str, signal: int = 0) -> None:
        """The next round was decided, and did not come to be."""
        self.outcome, self.reason, self.interrupt_signal = outcome, reason, signal
        self.reports[-1] = msgspec.structs.replace(
            self.reports[-1], decision=reason, again=False, delay=0.0
        )
