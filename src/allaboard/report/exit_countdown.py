"""The workers that are to exit and still run: who they are, who cannot react, when they are killed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_SHOWN_WORKERS = 4
"""Workers that a line names before it counts the rest."""
FIRST_REMINDER_S, REMINDER_INTERVAL_S = 5, 10
"""Seconds before the kill at which a line is printed where no status line can count down: 5, 10, 20, ..."""


class RunningWorker(NamedTuple):
    """A worker that has not exited."""

    name: str
    """Its name for people: "worker 1", "ps 0"."""
    pid: int
    """Its pid."""
    state: str
    """The kernel's letter for its state; "" if it is not known."""


def name_running(running: Sequence[RunningWorker]) -> str:
    """Return the names of the first workers, and how many more there are."""
    names = ", ".join(w.name for w in running[:MAX_SHOWN_WORKERS])
    more = len(running) - MAX_SHOWN_WORKERS
    return f"{names} and {more} more" if more > 0 else names


def countdown_text(running: Sequence[RunningWorker], seconds_left: float) -> str:
    """Return who still runs, and when they are killed; "" if all have exited."""
    if not running:
        return ""
    verb, pronoun = ("are", "them") if len(running) > 1 else ("is", "it")
    left_s = max(0, round(seconds_left))
    return f"{name_running(running)} {verb} still running; killing {pronoun} in {left_s} s"


def is_reminder_due(seconds_left: int) -> bool:
    """Return True if a line is printed at this whole number of seconds before the kill."""
    return seconds_left > 0 and (
        seconds_left == FIRST_REMINDER_S or seconds_left % REMINDER_INTERVAL_S == 0
    )
