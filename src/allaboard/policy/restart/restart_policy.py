"""What the user allowed to be started again, and what is answered. It is read before the workers
start, so it imports next to nothing."""

from __future__ import annotations

from dataclasses import dataclass

RESTART_NOT_ALLOWED = "--on-failure stop"
"""Why nothing is started again where the user did not ask for it."""
MAX_RESTART_DELAY_S = 60.0
"""Seconds that a pause between two rounds has at the most."""


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """``allowed`` by --on-failure restart, at most ``most`` times; ``backoff`` is the pause (s) before
    a round that follows one without progress, doubled each time."""

    allowed: bool = False
    max_restarts: int = 3
    backoff: float = 1.0

    @property
    def as_options(self) -> str:
        """As the options say it: what is compared between hosts."""
        if not self.allowed:
            return RESTART_NOT_ALLOWED
        return f"--on-failure restart --max-restarts {self.max_restarts} --backoff {self.backoff:g}"


@dataclass(frozen=True)
class Restart:
    """Start it again after ``delay`` s."""

    reason: str
    delay: float = 0.0


@dataclass(frozen=True)
class NoRestart:
    """Leave it at that."""

    reason: str


def restart_delay(backoff: float, futile: int) -> float:
    """Seconds before the next start after so many in a row without progress: none after progress,
    then ``backoff``, doubled each time, up to ``MOST_PAUSE``."""
    if futile <= 0 or backoff <= 0:
        return 0.0
    return min(backoff * 2.0 ** min(futile - 1, 30), max(MAX_RESTART_DELAY_S, backoff))
