"""The end of a run, for a person: where the time of those who trained together went."""

from __future__ import annotations

from statistics import median

from allaboard.facts import Report, WorkerReport

LEAST = 5.0
"""Seconds of training below which nothing is told."""
SHARE = 0.01


def phase_lines(report: Report) -> list[str]:
    """One line: medians over the members; none of a job with parameter servers, which has lines of its own,
    and where nothing was measured."""
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
    known = [(w.spent, w.trained) for w in people if w.spent is not None]
    saved = round(median(s.saved for s, _ in known))
    evaluated = round(median(s.evaluated for s, _ in known))
    return [
        (median(s.input / t for s, t in known), "waiting for data"),
        (median(s.sync / t for s, t in known), "waiting for others"),
        (median(s.checkpoints / t for s, t in known), _many(saved, "checkpoint")),
        (median(s.evaluations / t for s, t in known), _many(evaluated, "evaluation")),
    ]


def _many(count: int, noun: str) -> str:
    return f"in {count} {noun}{'s' if count != 1 else ''}"
