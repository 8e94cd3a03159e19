"""The ends of a run, or of a round of it, and what may be tried again after a failure."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """The end of a run; each has one exit code."""

    COMPLETED = "completed"
    FAILED = "failed"
    USAGE = "usage"
    ROLL_CALL_FAILED = "roll-call-failed"
    HANG = "hang"
    INTERRUPTED = "interrupted"


class Retry(StrEnum):
    """What to do with a job that failed in this way."""

    HERE = "here"
    """Try again, on the same hosts: the cause may have passed. Also if the cause is not certain."""
    ELSEWHERE = "elsewhere"
    """Try again without the hosts that the finding names: the cause is on them, and would be met again."""
    RESOURCES = "resources"
    """Do not try again with the same request: memory, disk space or another limit was used up."""
    NEVER = "never"
    """Do not try again: the script or its configuration would fail in the same way."""


class RetryAdvice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to do with a run that failed, and why."""

    verdict: Retry
    """What to do."""
    reason: str
    """Why, as a sentence."""
    rule: str = ""
    """Code of the rule whose finding decided it; absent if none did."""
    hosts: tuple[str, ...] = ()
    """With "elsewhere": the hosts that are certainly at fault."""
