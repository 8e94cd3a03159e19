"""The system's clock, and a fake one for tests; the only importer of time among the pure rooms."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Reads CLOCK_MONOTONIC; wall times hang on one anchor, so they never run backwards."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self, monotonic: float) -> str:
        return _iso(self._offset + monotonic)


class FakeClock:
    """Stands still until `advance` moves it."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def advance(self, seconds: float) -> float:
        self.now += seconds
        return self.now

    def monotonic(self) -> float:
        return self.now

    def utc(self, monotonic: float) -> str:
        return _iso(monotonic)


LAST_SECOND = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The last time that can be written (s since 1970)."""


def _iso(seconds: float) -> str:
    """Return the time as text; one that cannot be (of a peer, for example) as the nearest that can."""
    possible = min(seconds, LAST_SECOND) if seconds > 0 else 0.0  # not-a-number is not greater
    stamp = datetime.fromtimestamp(possible, UTC)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
