"""What the user allowed to be restarted, and the possible decisions. It is read before the workers start, so
it imports next to nothing."""

from __future__ import annotations

from typing import NamedTuple

RESTART_NOT_ALLOWED = "--on-failure stop"
"""Why nothing is restarted if the user did not ask for it."""
MAX_RESTART_DELAY_S = 60.0
"""Longest pause between two rounds, unless the user's ``backoff`` is longer."""


class RestartPolicy(NamedTuple):
    """Rules of the user on what may be restarted, and how often."""

    allowed: bool = False
    """True with --on-failure restart."""
    max_restarts: int = 3
    """Greatest number of restarts."""
    backoff: float = 1.0
    """Pause before a round that follows one without progress (s), doubled each time."""

    @property
    def as_options(self) -> str:
        """The policy as options on the command line: what is compared between hosts."""
        if not self.allowed:
            return RESTART_NOT_ALLOWED
        return f"--on-failure restart --max-restarts {self.max_restarts} --backoff {self.backoff:g}"


class Restart(NamedTuple):
    """The decision to restart after ``delay`` seconds."""

    reason: str
    delay: float = 0.0


class NoRestart(NamedTuple):
    """The decision to restart nothing."""

    reason: str


def restart_delay(backoff: float, futile: int) -> float:
    """Return the pause (s) before the next start after ``futile`` starts in a row without progress: 0 after
    progress, then ``backoff``, doubled each time, up to MAX_RESTART_DELAY_S."""
    if futile <= 0 or backoff <= 0:
        return 0.0
    # The exponent is bounded: a float power beyond 2 ** 1023 raises OverflowError.
    return min(backoff * 2.0 ** min(futile - 1, 30), max(MAX_RESTART_DELAY_S, backoff))
