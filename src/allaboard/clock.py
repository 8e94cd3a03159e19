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


def _iso(seconds: float) -> str:
    stamp = datetime.fromtimestamp(seconds, UTC)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
