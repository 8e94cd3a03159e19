"""Detects hosts that do not answer any more although the streams to them are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S

CHECK_INTERVAL_S = 2.0
"""Seconds between two checks: the kernel sends its keep-alive probes only every few seconds."""


class SilenceDetector:
    """Remembers which hosts are silent, and reports changes."""

    def __init__(self) -> None:
        self.silent_since: dict[int, float] = {}
        """Since when each silent host has not answered (s, CLOCK_MONOTONIC), by its number."""
        self._next_check_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return True if a check is due; with thousands of hosts each one costs."""
        return now >= self._next_check_at

    def find_changes(
        self,
        now: float,
        silences: Mapping[int, Callable[[], float]],
        limit_s: float = HOST_AWAY_AFTER_S,
    ) -> tuple[list[int], list[int]]:
        """Return the numbers of hosts that fell silent since the last check, and of those that answer again.

        ``silences`` return for how many seconds each host has not answered, ``limit_s`` is how long that may
        last. Hosts that are not in ``silences`` any more are forgotten.
        """
        if not self.is_due(now):
            return [], []
        self._next_check_at = now + CHECK_INTERVAL_S
        lost, recovered = [], []
        # A copy of the keys, since the dictionary shrinks meanwhile.
        for number in [n for n in self.silent_since if n not in silences]:
            del self.silent_since[number]
        for number, silence in silences.items():
            seconds = silence()
            if seconds >= limit_s and number not in self.silent_since:
                self.silent_since[number] = now - seconds
                lost.append(number)
            elif seconds < limit_s and number in self.silent_since:
                del self.silent_since[number]
                recovered.append(number)
        return lost, recovered
