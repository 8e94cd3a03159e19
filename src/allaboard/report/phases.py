"""The end of a run, for a person: its steps, and where the time of the workers that trained went."""

from __future__ import annotations

from statistics import median

from allaboard.facts import Report, WorkerReport
from allaboard.report.servers import format_bytes

MIN_TRAINED_S = 5.0
"""Seconds of training below which no shares are shown: they would be those of the start."""
MIN_SHOWN_SHARE = 0.01
"""Share of the time below which an activity is left out."""


def step_lines(report: Report) -> list[str]:
    """Return one line: steps, steps per second, how long a step took, and memory at its highest; or none.

    Steps per second are those of the time in which the job moved: a wait that never ended is left out.
    """
    clauses = []
    trained = [w for w in report.workers if w.step]
    if trained:
        furthest = max(trained, key=lambda w: w.step)
        moving_s = furthest.trained_s - max(w.unfinished_wait_s for w in trained)
        rate = f", {furthest.step / moving_s:.3g} steps/s" if moving_s >= MIN_TRAINED_S else ""
        clauses.append(f"{furthest.step} step{'s' if furthest.step != 1 else ''}{rate}")
    spread = report.step_spread
    if spread is not None and trained:
        clauses.append(
            f"median step {format_seconds(spread.median_s)} (90% of them from "
            f"{format_seconds(spread.low_s)} to {format_seconds(spread.high_s)})"
        )
    largest = max(report.workers, key=lambda w: w.peak_memory_nbytes, default=None)
    if clauses and largest is not None and largest.peak_memory_nbytes:
        name = f"{largest.job} {largest.index}"
        clauses.append(f"memory at most {format_bytes(largest.peak_memory_nbytes)} ({name})")
    return ["; ".join(clauses)] if clauses else []


def format_seconds(seconds: float) -> str:
    """Return a duration with two or three digits, in ms below a tenth of a second."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 0.1 else f"{seconds:.3g} s"


def phase_lines(report: Report) -> list[str]:
    """Return one line of medians over the workers, or none.

    There is none for a job with parameter servers, which has lines of its own, and where nothing was
    measured.
    """
    workers = [w for w in report.workers if w.trained_s >= MIN_TRAINED_S]
    if not workers or any(w.times is not None for w in report.workers):
        return []
    shares = sorted(_shares(workers), reverse=True)
    shown = [(share, activity) for share, activity in shares if share >= MIN_SHOWN_SHARE]
    if not shown:
        return []
    (largest, first_activity), *smaller = shown
    clauses = [f"{largest:.0%} of it {first_activity}", *(f"{s:.0%} {name}" for s, name in smaller)]
    scope = f"median over {len(workers)} workers: " if len(workers) > 1 else ""
    seconds = median(w.trained_s for w in workers)
    return [f"{scope}{seconds:.0f} s of training, {', '.join(clauses)}"]


def _shares(workers: list[WorkerReport]) -> list[tuple[float, str]]:
    measured = [(w.spent, w.trained_s, w.rank) for w in workers if w.spent is not None]
    saved = [(s.checkpoints / t, s.saved, rank) for s, t, rank in measured]
    evaluated = [(s.evaluations / t, s.evaluated, rank) for s, t, rank in measured]
    return [
        (median(s.input / t for s, t, _ in measured), "waiting for data"),
        _waiting_share(workers),
        _phase_share(saved, "checkpoint"),
        _phase_share(evaluated, "evaluation"),
    ]


def _waiting_share(workers: list[WorkerReport]) -> tuple[float, str]:
    """Return the share of waiting for other ranks: the median; of those alone that were in a wait which never
    ended if there are some, since the others are who they waited for."""
    waiting_at_end = [w for w in workers if w.unfinished_wait_s]
    shares = [
        (w.spent.sync + w.unfinished_wait_s) / w.trained_s
        for w in waiting_at_end or workers
        if w.spent is not None
    ]
    share = min(1.0, median(shares)) if shares else 0.0
    if not waiting_at_end:
        return share, "waiting for other ranks"
    ranks = ", ".join(str(w.rank) for w in waiting_at_end[:4])
    more = " and more" if len(waiting_at_end) > 4 else ""
    last_s = median(w.unfinished_wait_s for w in waiting_at_end)
    plural = "s" if len(waiting_at_end) > 1 else ""
    return share, (
        f"waiting for other ranks ({last_s:.0f} s at the end, in a call that never returned: "
        f"rank{plural} {ranks}{more})"
    )


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
