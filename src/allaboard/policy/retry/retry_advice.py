"""What to do with a run that failed: the verdicts of its findings, weighed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import Certainty, Finding, Outcome, Severity, Stage
from allaboard.facts.outcome import Retry, RetryAdvice

_PRECEDENCE = (Retry.ELSEWHERE, Retry.NEVER, Retry.RESOURCES)
"""Which verdict counts if certain findings disagree. A host that is at fault can make a correct script fail;
a script that fails can look as if memory had run out, but not as if a host were at fault."""
_NO_VERDICT = (Outcome.COMPLETED, Outcome.USAGE, Outcome.INTERRUPTED)
"""Ends that are no failure of the job, or that allaboard's own exit code explains."""


def advise_retry(
    outcome: Outcome, findings: Sequence[Finding], recurring: str = ""
) -> RetryAdvice | None:
    """Return what to do with a run that ended so; None if it did not fail.

    ``findings`` are those of the last round; ``recurring`` says why another round would fail in the same way,
    "" if that is not known. Only a certain error says anything else than "try again here": a wrong "do not"
    would waste the job, a wrong "again" is bounded by the scheduler's own limit.
    """
    if outcome in _NO_VERDICT:
        return None
    errors = [f for f in findings if f.severity is Severity.ERROR and f.over is None]
    # What was read in the script's text may be an error, but it did not end a job that trained.
    errors = [f for f in errors if f.stage is not Stage.CONFIG] or errors
    certain = [f for f in errors if f.certainty is Certainty.CERTAIN and f.retry is not None]
    for verdict in _PRECEDENCE:
        deciding = [f for f in certain if f.retry is verdict]
        if verdict is Retry.NEVER and not deciding and recurring:
            return RetryAdvice(verdict=Retry.NEVER, reason=recurring)
        if deciding:
            return RetryAdvice(
                verdict=verdict,
                reason=deciding[0].summary,
                rule=deciding[0].rule,
                hosts=_hosts(deciding) if verdict is Retry.ELSEWHERE else (),
            )
    if errors:
        decisive = next((f for f in errors if f in certain), errors[0])
        return RetryAdvice(verdict=Retry.HERE, reason=decisive.summary, rule=decisive.rule)
    return RetryAdvice(verdict=Retry.HERE, reason="no finding names the cause")


def _hosts(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(w.host for f in findings for w in f.who if w.host))
