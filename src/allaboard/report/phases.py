"""The end of a run, for a person: where the time of those who trained together went."""

from __future__ import annotations

from statistics import median

from allaboard.facts import Report, Severity, WorkerReport

LEAST = 5.0
"""Seconds of training below which nothing is told."""
SHARE = 0.01


def phase_lines(report: Report) -> list[str]:
    """One line: medians over the members; none of a job with parameter servers, which has lines of its own,
    where nothing was measured, and where an error was found: a wait that never ended is in no step."""
    if any(f.severity is Severity.ERROR for f in report.findings):
        return []
    people = [w for w in report.workers if w.trained >= LEAST]
    if not people or any(w.times is not None for w in report.workers):
        return []
    shares = sorted(_shares(people), reverse=True)
    told = [f"{share:.0%} {words}" for share, words in shares if share >= SHARE]
    if not told:
        return []
    each = "it" if len(people) == 1 else "each"
    seconds = median(w.trained for w in people)
    return [f"of {seconds:.0f} s of training {each} spent {', '.join(told)}"]


def _shares(people: list[WorkerReport]) -> list[tuple[float, str]]:
    known = [(w.spent, w.trained, w.rank) for w in people if w.spent is not None]
    saved = [(s.checkpoints / t, s.saved, rank) for s, t, rank in known]
    evaluated = [(s.evaluations / t, s.evaluated, rank) for s, t, rank in known]
    return [
        (median(s.input / t for s, t, _ in known), "waiting for data"),
        (median(s.sync / t for s, t, _ in known), "waiting for others"),
        _aside(saved, "checkpoint"),
        _aside(evaluated, "evaluation"),
    ]


def _aside(each: list[tuple[float, int, int]], noun: str) -> tuple[float, str]:
    """Share, number and rank of each: what one does alone the others wait for."""
    most, count, rank = max(each)
    usual = median(share for share, _, _ in each)
    if usual >= most / 2 and (len(each) != 2 or min(each)[0] >= most / 2):
        return usual, _many(round(median(n for _, n, _ in each)), noun)
    return most, f"{_many(count, noun)} (rank {rank})"


def _many(count: int, noun: str) -> str:
    return f"in {count} {noun}{'s' if count != 1 else ''}"
