"""What happened in a run, in three sentences: how it ended, why, and how far it had come."""

from __future__ import annotations

from allaboard.facts import Finding, RunPhase, Severity, Snapshot
from allaboard.report.plain_text import clean

_VERBS = {
    "completed": "completed",
    "failed": "failed",
    "hang": "was ended because it hung",
    "roll-call-failed": "was ended because not all ranks came",
    "interrupted": "was interrupted",
    "usage": "could not start",
}
_STANDS = {
    RunPhase.STARTING: "was starting when it was last seen",
    RunPhase.RUNNING: "was running when it was last seen",
    RunPhase.STALLED: "stood still when it was last seen",
    RunPhase.ENDING: "was being ended when it was last seen",
    RunPhase.ENDED: "ended, and how is not known",
}
"""Of a run without a report: whether it goes on cannot be told from its folder."""


def main_finding(findings: tuple[Finding, ...]) -> Finding | None:
    """Return the finding that explains the run: the earliest error, else the earliest warning."""
    for severity in (Severity.ERROR, Severity.WARNING):
        weighty = [f for f in findings if f.severity is severity]
        if weighty:
            return min(weighty, key=lambda f: (f.over is not None, f.at))
    return None


def headline(snapshot: Snapshot) -> str:
    """Return how the run stands, in a word or two for a title."""
    run = snapshot.run
    if run.outcome:
        return _VERBS.get(run.outcome, run.outcome)
    return _STANDS[run.phase]


def what_happened(snapshot: Snapshot, main: Finding | None = None) -> tuple[str, str, str]:
    """Return the three sentences. ``main``: the finding that explains the run; None: `main_finding`."""
    return _course(snapshot), _cause(snapshot, main), _progress(snapshot)


def _course(snapshot: Snapshot) -> str:
    run = snapshot.run
    ranks = f"{run.world_size} ranks" if run.world_size != 1 else "1 rank"
    hosts = [host.host for host in snapshot.hosts] or [run.host]
    where = f"{len(hosts)} hosts" if len(hosts) > 1 else clean(hosts[0]) or "one host"
    framework = f" of {run.framework}" if run.framework else ""
    lasted = duration_words(run.elapsed_s)
    subject = f"The run ({ranks}{framework} on {where})" if run.world_size else "The run"
    if not run.outcome:
        return f"{subject} {_STANDS[run.phase]}, after {lasted}."
    reason = clean(run.reason).rstrip(".")
    why = f": {reason}" if reason and reason != run.outcome else ""
    again = _restarts(snapshot)
    return f"{subject} {_VERBS.get(run.outcome, run.outcome)} after {lasted}{why}{again}."


def _restarts(snapshot: Snapshot) -> str:
    """Return how often something was started again meanwhile, and why the last time; "" if nothing was."""
    restarts = snapshot.run.restarts
    if not restarts:
        return ""
    count = "once" if len(restarts) == 1 else f"{len(restarts)} times, the last time"
    reason = clean(restarts[-1].reason).rstrip(".")
    return f"; meanwhile it was started again {count}: {reason}"


def _cause(snapshot: Snapshot, main: Finding | None) -> str:
    finding = main or main_finding(snapshot.findings)
    if finding is not None:
        likely = "" if finding.certainty == "certain" else f" ({finding.certainty})"
        other_count = len(snapshot.findings) + snapshot.findings_left_out - 1
        more = (
            f"; {other_count} more finding{'s' if other_count > 1 else ''}" if other_count else ""
        )
        text = clean(finding.summary).rstrip(".")
        return f"{text[:1].upper()}{text[1:]}{likely} [{finding.rule}{more}]."
    if snapshot.run.outcome in ("completed", "interrupted", ""):
        return "Nothing was found that needs attention."
    return "No rule knows what happened; the ends of the logs may tell."


def _progress(snapshot: Snapshot) -> str:
    run = snapshot.run
    if not run.step_highest:
        came = f"{run.ready} of {run.world_size} ranks were ready" if run.ready else ""
        return f"No training step was seen{f'; {came}' if came else ''}."
    steps = f"{run.step}" if run.step == run.step_highest else f"{run.step} to {run.step_highest}"
    clauses = [f"It did {steps} steps"]
    if run.step_s:
        clauses.append(f"a step took {step_words(run.step_s)} (median)")
    if run.loss is not None:
        clauses.append(f"the last loss was {run.loss:.4g}")
    return ", ".join(clauses) + "."


def duration_words(seconds: float) -> str:
    """Return ``42 s``, ``3 min 5 s`` or ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def step_words(seconds: float) -> str:
    """Return ``54 ms`` or ``1.2 s``."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"
