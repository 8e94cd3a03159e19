"""The ends of a run, or of a round of it."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The end of a run; each has one exit code."""

    COMPLETED = "completed"
    FAILED = "failed"
    USAGE = "usage"
    ROLL_CALL_FAILED = "roll-call-failed"
    HANG = "hang"
    INTERRUPTED = "interrupted"
