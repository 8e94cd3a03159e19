"""What one client of the feed is still to be sent. It is bounded, so that a client that does not read costs
no memory."""

from __future__ import annotations

from collections import deque

MAX_WAITING_LINES = 2000
"""Findings and notes that wait for a slow client; the oldest ones are dropped beyond that."""


class ClientBacklog:
    """Lines for a client, in order, except that of the snapshots only the newest waits.

    Every finding and note is sent once even to a client that is slow; a client that is so slow that they pile
    up finds the findings in the newest snapshot.
    """

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._snapshot: bytes | None = None
        self.dropped_lines = 0
        """Findings and notes that were dropped."""
        self.dropped_snapshots = 0
        """Snapshots that a newer one has replaced."""

    def add_line(self, line: bytes) -> None:
        """Add a line that must not be lost."""
        if len(self._lines) >= MAX_WAITING_LINES:
            self._lines.popleft()
            self.dropped_lines += 1
        self._lines.append(line)

    def set_snapshot(self, line: bytes) -> None:
        """Let this snapshot wait in place of the one that waits now."""
        self.dropped_snapshots += self._snapshot is not None
        self._snapshot = line

    def take_next(self) -> bytes | None:
        """Return what is to be sent next, and forget it; None if there is nothing."""
        if self._lines:
            return self._lines.popleft()
        snapshot, self._snapshot = self._snapshot, None
        return snapshot
