"""How allaboard exits, and what to do with the job: decided from how the job ended. Pure."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.agent.attempt_history import AttemptHistory
from allaboard.agent.final_report import shell_exit_code
from allaboard.agent.options import Options
from allaboard.facts import Exit, Finding, JobView, Outcome, RetryAdvice
from allaboard.policy.retry.retry_advice import advise_retry
from allaboard.policy.retry.scheduler_exit_codes import scheduler_exit_code


class ExitDecision(NamedTuple):
    """How allaboard exits."""

    code: int
    """Its exit code."""
    fatal_signal: int | None
    """Signal of which it dies instead, as its only worker did; None if it exits."""
    advice: RetryAdvice | None
    """What to do with the job; None if it did not fail."""


def decide_exit(
    options: Options,
    history: AttemptHistory,
    findings: tuple[Finding, ...],
    last_findings: tuple[Finding, ...],
    view: JobView,
    only_exit: Exit | None,
) -> ExitDecision:
    """Return how to exit after all rounds.

    ``findings`` are those of all rounds and of the script, ``last_findings`` those of the last round;
    ``only_exit`` is the end of the only worker, None if there are more.
    """
    code = options.exit_code_of(history.outcome, findings, history.interrupt_signal, view)
    fatal_signal = None
    if only_exit is not None and options.passes_through and history.outcome is Outcome.FAILED:
        # A single worker that exited with 0 passes its 0 through, although the job failed elsewhere: its
        # launcher judges what that means.
        ended_well = only_exit.code == 0 and not options.restarts.allowed
        code = 0 if ended_well else shell_exit_code(only_exit)
        fatal_signal = only_exit.signal
    advice = advise_retry(history.outcome, last_findings, history.recurring_failure)
    if options.scheduler.exit_codes:
        code = scheduler_exit_code(history.outcome, advice, code)
        fatal_signal = None
    return ExitDecision(code, fatal_signal, advice)
