"""Findings and the course of a run as lines for a person. At most three lines a finding."""

from __future__ import annotations

import re

from allaboard.analysis.roll_call.waiting_message import how_far, waits
from allaboard.analysis.stalls.checkpoint_pauses import pause_line
from allaboard.coordinator.trackers.server_downtime import told as returned
from allaboard.facts import Certainty, Finding, JobView, Outcome, Report
from allaboard.policy.restart.restart_policy import NOT_ALLOWED
from allaboard.report.phases import phase_lines
from allaboard.report.servers import server_lines

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
UNSEEN = 4
"""Lines about what could not be seen before the rest is counted."""
_COLOUR = {"error": "31", "warning": "33", "info": "36"}


def clean(text: str) -> str:
    """Neutralises control characters: names and messages come from other processes."""
    return _CONTROL.sub(lambda m: " " if m[0] in "\n\t" else repr(m[0])[1:-1], text)


def finding_lines(finding: Finding, colour: bool = False, verbose: bool = False) -> list[str]:
    """Who and what; why we think so; what to do. One line where it is over."""
    head = f"{finding.rule} {finding.name}"
    if finding.over is not None:
        return [
            f"{head} is over: {clean(finding.summary)} (it was so until {finding.over[11:19]} UTC)"
        ]
    if colour:
        head = f"\x1b[1;{_COLOUR[finding.severity]}m{head}\x1b[0m"
    sure = "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty})"
    who = f" · {finding.who[0]}" if len(finding.who) == 1 else ""
    lines = [f"{head}: {clean(finding.summary)}{sure}{clean(who)}"]
    evidence = finding.evidence if verbose else finding.evidence[:3]
    if evidence:
        lines.append("  why  " + "; ".join(clean(str(e)) for e in evidence))
    if finding.fix:
        lines.append("  do   " + clean(finding.fix))
    return lines


def progress(view: JobView) -> str:
    """The line at the bottom while workers come up: who is here, who is awaited, and where."""
    people = [m for m in view.members if not m.launcher]
    if text := waits(view):
        return text
    coming = [m for m in people if m.in_user_code and not m.candidate]
    if view.rolled_at is None and coming:
        seconds = view.now - view.launched_at
        where = "; ".join(how_far(m) for m in coming[:2])
        return f"0 of {len(people)} aboard, {seconds:.0f} s: {where}"
    if view.stalled:
        stood = f"{view.now - view.progress_at:.0f} s"
        if line := pause_line(view):
            return f"{line} for {stood}"
        return f"no progress for {stood}; looking where everybody is"
    return ""


def summary_lines(report: Report) -> list[str]:
    """The last lines of a run."""
    end = f"{report.outcome} after {report.seconds:.1f} s, exit code {report.exit_code}"
    if report.outcome is Outcome.FAILED or (
        report.outcome is Outcome.INTERRUPTED and report.reason != report.outcome
    ):
        end += f": {report.reason}"
    lines = [end, *_round_lines(report), *server_lines(report), *phase_lines(report)]
    if report.findings:
        named = "; ".join(_named(f) for f in report.findings[:4])
        more = f"; and {len(report.findings) - 4} more" if len(report.findings) > 4 else ""
        lines.append(
            f"{len(report.findings)} findings: {named}{more}".replace("1 findings", "1 finding")
        )
    elif report.outcome not in (Outcome.COMPLETED, Outcome.INTERRUPTED):
        lines.append("no finding: no rule knows what happened; the logs may")
    lines += [f"not seen: {clean(line)}" for line in report.unseen[:UNSEEN]]
    if len(report.unseen) > UNSEEN:
        lines.append(f"not seen: and {len(report.unseen) - UNSEEN} more, in the report")
    if report.findings or report.unseen or report.outcome is not Outcome.COMPLETED:
        lines.append(f"logs, journal and report: {report.run_dir}")
    return lines


def _round_lines(report: Report) -> list[str]:
    """Where workers were started again: each task alone, how each round ended, what was decided."""
    lines = [
        f"  {t.task.replace('-', ' ')} came back: {clean(t.cause)}"
        + (f"; {returned(t)}" if t.seconds is not None else "")
        for t in report.returns[-SHOWN:]
    ]
    more = max(0, len(report.returns) - SHOWN), max(0, len(report.rounds) - SHOWN)
    if any(more):
        lines.insert(0, f"  {more[0]} returns and {more[1]} rounds before these are in the report")
    for ended in report.rounds[-SHOWN:] if report.restarts else ():
        how = str(ended.cause) if ended.cause is not None else ended.reason
        again = f", {ended.repeated} of them done before" if ended.repeated else ""
        lines.append(
            f"  round {ended.number}: {clean(how)} after {ended.seconds:.1f} s and {ended.steps} "
            f"steps{again}"
        )
    decision = report.rounds[-1].decision if report.rounds else ""
    ended_well = report.outcome in (Outcome.COMPLETED, Outcome.INTERRUPTED)
    if decision and decision != NOT_ALLOWED and not ended_well:
        lines.append(f"  not started again: {clean(decision)}")
    return lines


SHOWN = 8
"""Rounds, and returns of a task alone, that the last lines of a run list."""


def _named(finding: Finding) -> str:
    over = ["over"] if finding.over is not None else []
    who = ", ".join([*(w.name for w in finding.who[:4]), *over])
    return f"{finding.rule} {finding.name} ({who})" if who else f"{finding.rule} {finding.name}"
