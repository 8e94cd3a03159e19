"""What one member may send: bytes, messages, events and processes, each by a bucket that refills. Pure.

The bounds are many times what the busiest healthy host sends (64 ranks sampled each second). A member that is
beyond them is dropped, so that it costs the leader neither its memory nor its time.
"""

from __future__ import annotations

from allaboard.cluster.transport.wire import HostEvents, Message
from allaboard.protocol.events import ProcessSampled

BURST_BYTES, BYTES_PER_S = 24 << 20, 4 << 20
BURST_MESSAGES, MESSAGES_PER_S = 4_000, 500.0
BURST_EVENTS, EVENTS_PER_S = 20_000, 4_000.0
BURST_PROCESSES, PROCESSES_PER_S = 1_024, 0.5
"""Processes that it may report for the first time."""


class _Bucket:
    """An amount that may be spent, and that refills with time."""

    __slots__ = ("_filled_at", "_left")

    def __init__(self, burst: float, now: float) -> None:
        self._left, self._filled_at = burst, now

    def spend(self, amount: float, now: float, burst: float, per_s: float) -> bool:
        """Take the amount; return False if there is not as much."""
        if amount > self._left:
            self._left = min(burst, self._left + max(0.0, now - self._filled_at) * per_s)
            self._filled_at = now
        if amount > self._left:
            return False
        self._left -= amount
        return True


class MemberBudget:
    """What one member may still send."""

    __slots__ = ("_bytes", "_events", "_messages", "_pids", "_processes")

    def __init__(self, now: float) -> None:
        self._bytes = _Bucket(BURST_BYTES, now)
        self._messages = _Bucket(BURST_MESSAGES, now)
        self._events = _Bucket(BURST_EVENTS, now)
        self._processes = _Bucket(BURST_PROCESSES, now)
        self._pids: set[int] = set()

    def take_bytes(self, nbytes: int, now: float) -> str:
        """Count one message of so many bytes; return what is exceeded, "" if nothing is."""
        if not self._bytes.spend(nbytes, now, BURST_BYTES, BYTES_PER_S):
            return f"more than {BYTES_PER_S} bytes a second"
        if not self._messages.spend(1, now, BURST_MESSAGES, MESSAGES_PER_S):
            return f"more than {MESSAGES_PER_S:.0f} messages a second"
        return ""

    def take_message(self, message: Message, now: float) -> str:
        """Count the events and processes in a message; return what is exceeded, "" if nothing is."""
        if not isinstance(message, HostEvents):
            return ""
        if not self._events.spend(len(message.events), now, BURST_EVENTS, EVENTS_PER_S):
            return f"more than {EVENTS_PER_S:.0f} events a second"
        pids = {e.pid for e in message.events if type(e) is ProcessSampled} - self._pids
        if pids and not self._processes.spend(len(pids), now, BURST_PROCESSES, PROCESSES_PER_S):
            return f"more than {BURST_PROCESSES} processes"
        self._pids |= pids
        return ""
