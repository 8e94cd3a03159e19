"""What the user allowed to be started again, and what is answered. It is read before the workers
start, so it imports next to nothing."""

from __future__ import annotations

from dataclasses import dataclass

NOT_ALLOWED = "--on-failure stop"
"""Why nothing is started again where the user did not ask for it."""
MOST_PAUSE = 60.0
"""Seconds that a pause between two rounds has at the most."""


@dataclass(frozen=True, kw_only=True)
class Restarts:
    """``allowed`` by --on-failure restart, at most ``most`` times; ``backoff`` is the pause (s) before
    a round that follows one without progress, doubled each time."""

    allowed: bool = False
    most: int = 3
    backoff: float = 1.0

    @property
    def text(self) -> str:
        """As the options say it: what is compared between hosts."""
        if not self.allowed:
            return NOT_ALLOWED
        return f"--on-failure restart --max-restarts {self.most} --backoff {self.backoff:g}"


@dataclass(frozen=True)
class Again:
    """Start it again after ``delay`` s."""

    reason: str
    delay: float = 0.0


@dataclass(frozen=True)
class Stop:
    """Leave it at that."""

    reason: str


def pause(backoff: float, futile: int) -> float:
    """Seconds before the next start after so many in a row without progress: none after progress,
    then ``backoff``, doubled each time, up to ``MOST_PAUSE``."""
    if futile <= 0 or backoff <= 0:
        return 0.0
    return min(backoff * 2.0 ** min(futile - 1, 30), max(MOST_PAUSE, backoff))
