"""The last lines of a run: how it ended, its restarts, where the time went, and its findings."""

from __future__ import annotations

from datetime import datetime, timedelta

from allaboard.facts import Finding, Outcome, Report, Severity
from allaboard.report.finding_text import finding_title
from allaboard.report.phases import phase_lines, step_lines
from allaboard.report.plain_text import clean
from allaboard.report.servers import server_lines

MAX_SHOWN_UNSEEN = 4
"""Lines about what could not be seen before the rest is counted."""
MAX_SHOWN_ROUNDS = 8
"""Rounds, and returns of a task alone, that the last lines of a run list."""

_ENDS = {
    Outcome.ROLL_CALL_FAILED: "the roll call failed",
    Outcome.HANG: "the job hung and was ended",
}
"""How a run ended, where the outcome's own word does not say it in a sentence."""


def summary_lines(report: Report, routine_decision: str = "") -> list[str]:
    """Return the last lines of a run: how it ended, its steps, where the time went, and what was found.

    ``routine_decision`` is the reason against a restart that needs no mention: the user asked for none.
    """
    how = _ENDS.get(report.outcome, report.outcome)
    end = f"{how} after {report.seconds:.1f} s, exit code {report.exit_code}"
    if report.outcome is Outcome.FAILED or (
        report.outcome is Outcome.INTERRUPTED and report.reason != report.outcome
    ):
        end += f": {clean(report.reason)}"
    lines = [
        end,
        *_round_lines(report, routine_decision),
        *step_lines(report),
        *server_lines(report),
        *phase_lines(report),
    ]
    if report.findings:
        named = "; ".join(finding_title(f) for f in report.findings[:4])
        more = f"; and {len(report.findings) - 4} more" if len(report.findings) > 4 else ""
        lines.append(
            f"{len(report.findings)} findings: {named}{more}".replace("1 findings", "1 finding")
        )
    elif report.outcome not in (Outcome.COMPLETED, Outcome.INTERRUPTED):
        lines.append("no finding: no rule knows what happened; the logs may")
    lines += [f"not seen: {clean(line)}" for line in report.unseen[:MAX_SHOWN_UNSEEN]]
    if len(report.unseen) > MAX_SHOWN_UNSEEN:
        lines.append(f"not seen: and {len(report.unseen) - MAX_SHOWN_UNSEEN} more, in the report")
    return lines


def closing_finding(report: Report) -> Finding | None:
    """Return the finding that the last lines show again in full: the first error, else the first warning.

    Hours of output may have passed since it was announced. One that is resolved, and notes, are not repeated.
    Those of the last round come first: what is to be done about a round before it is about processes that
    are gone.
    """
    present = [f for f in report.findings if f.over is None]
    for severity in (Severity.ERROR, Severity.WARNING):
        weighty = [f for f in present if f.severity is severity]
        if weighty:
            return next((f for f in weighty if _is_of_last_round(f, report)), weighty[0])
    return None


def _is_of_last_round(finding: Finding, report: Report) -> bool:
    earlier_s = sum(r.seconds + r.delay for r in report.rounds[:-1])
    try:
        begun = datetime.fromisoformat(report.started) + timedelta(seconds=earlier_s)
        return datetime.fromisoformat(finding.at) >= begun
    except (ValueError, TypeError):  # a report of somebody else: no time, or one without a zone
        return False


def location_line(report: Report, has_page: bool = True) -> str:
    """Return where the report lies; ``has_page`` is False if there is none for people to look at."""
    page = "/report.html" if has_page else ""
    return f"logs, journal and report: {report.run_dir}{page}"


def _round_lines(report: Report, routine_decision: str) -> list[str]:
    """Return how restarts went: each task that came back alone, how each round ended, what was decided."""
    lines = [
        f"  {t.task.replace('-', ' ')} came back: {clean(t.cause)}"
        + (f"; {t.recovery}" if t.seconds is not None else "")
        for t in report.returns[-MAX_SHOWN_ROUNDS:]
    ]
    more = (
        max(0, len(report.returns) - MAX_SHOWN_ROUNDS),
        max(0, len(report.rounds) - MAX_SHOWN_ROUNDS),
    )
    if any(more):
        lines.insert(0, f"  {more[0]} returns and {more[1]} rounds before these are in the report")
    for ended in report.rounds[-MAX_SHOWN_ROUNDS:] if report.restarts else ():
        how = str(ended.cause) if ended.cause is not None else ended.reason
        again = f", {ended.repeated} of them done before" if ended.repeated else ""
        lines.append(
            f"  round {ended.number}: {clean(how)} after {ended.seconds:.1f} s and {ended.steps} "
            f"steps{again}"
        )
    decision = report.rounds[-1].decision if report.rounds else ""
    ended_well = report.outcome in (Outcome.COMPLETED, Outcome.INTERRUPTED)
    if decision and decision != routine_decision and not ended_well:
        lines.append(f"  not started again: {clean(decision)}")
    return lines
