"""The end of a run, for a person: where the time of the workers that trained went."""

from __future__ import annotations

from statistics import median

from allaboard.facts import Report, Severity, WorkerReport

MIN_TRAINED_S = 5.0
"""Seconds of training below which no shares are shown: they would be those of the start."""
MIN_SHOWN_SHARE = 0.01
"""Share of the time below which an activity is left out."""


def phase_lines(report: Report) -> list[str]:
    """Return one line of medians over the workers, or none.

    There is none for a job with parameter servers, which has lines of its own; where nothing was measured;
    and where an error was found, since a wait that never ended belongs to no step.
    """
    if any(f.severity is Severity.ERROR for f in report.findings):
        return []
    workers = [w for w in report.workers if w.trained >= MIN_TRAINED_S]
    if not workers or any(w.times is not None for w in report.workers):
        return []
    shares = sorted(_shares(workers), reverse=True)
    shown = [(share, activity) for share, activity in shares if share >= MIN_SHOWN_SHARE]
    if not shown:
        return []
    (largest, first_activity), *others = shown
    clauses = [f"{largest:.0%} of it {first_activity}", *(f"{s:.0%} {name}" for s, name in others)]
    scope = f"median over {len(workers)} workers: " if len(workers) > 1 else ""
    seconds = median(w.trained for w in workers)
    return [f"{scope}{seconds:.0f} s of training, {', '.join(clauses)}"]


def _shares(workers: list[WorkerReport]) -> list[tuple[float, str]]:
    measured = [(w.spent, w.trained, w.rank) for w in workers if w.spent is not None]
    saved = [(s.checkpoints / t, s.saved, rank) for s, t, rank in measured]
    evaluated = [(s.evaluations / t, s.evaluated, rank) for s, t, rank in measured]
    return [
        (median(s.input / t for s, t, _ in measured), "waiting for data"),
        (median(s.sync / t for s, t, _ in measured), "waiting for other ranks"),
        _phase_share(saved, "checkpoint"),
        _phase_share(evaluated, "evaluation"),
    ]


def _phase_share(shares: list[tuple[float, int, int]], noun: str) -> tuple[float, str]:
    """Return the share, and what it was spent on, of an activity with (share, count, rank) of each worker.

    What a single rank does alone is attributed to that rank: all others wait for it.
    """
    largest, count, rank = max(shares)
    typical = median(share for share, _, _ in shares)
    if typical >= largest / 2 and (len(shares) != 2 or min(shares)[0] >= largest / 2):
        return typical, _count_phrase(round(median(n for _, n, _ in shares)), noun)
    return largest, f"{_count_phrase(count, noun)} (rank {rank})"


def _count_phrase(count: int, noun: str) -> str:
    return f"in {count} {noun}{'s' if count != 1 else ''}"
