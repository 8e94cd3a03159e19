"""How a run, or a round of it, ended."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """Each has one exit code."""

    COMPLETED = "completed"
    FAILED = "failed"
    USAGE = "usage"
    ROLL_CALL_FAILED = "roll-call-failed"
    HANG = "hang"
    INTERRUPTED = "interrupted"
