"""Bounds how many messages a run sends. Pure: ``now`` is an argument."""

from __future__ import annotations

from collections import deque

MAX_MESSAGES = 10
"""Messages within `WINDOW_S`; the message of the end is sent beyond that."""
WINDOW_S = 3600.0


class RateLimit:
    """Counts what was sent in the last hour, and what was not."""

    def __init__(self, max_messages: int = MAX_MESSAGES, window_s: float = WINDOW_S) -> None:
        self._max_messages, self._window_s = max_messages, window_s
        self._sent_at: deque[float] = deque()
        self.withheld = 0
        """Messages that were not sent since the last one that was."""

    def allows(self, now: float, is_last: bool = False) -> bool:
        """Return True if a message may be sent now (s), and count it; ``is_last``: the run has ended."""
        while self._sent_at and self._sent_at[0] <= now - self._window_s:
            self._sent_at.popleft()
        if len(self._sent_at) >= self._max_messages and not is_last:
            self.withheld += 1
            return False
        self._sent_at.append(now)
        return True

    def take_withheld(self) -> int:
        """Return how many messages were not sent, and forget them."""
        withheld, self.withheld = self.withheld, 0
        return withheld
