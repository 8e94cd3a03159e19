"""Other hosts of which nothing comes any more while it trains, though their streams are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S

CHECK_INTERVAL_S = 2.0
"""Seconds between two looks: the kernel asks every few seconds only."""


class SilenceDetector:
    """``away``: the numbers of those who do not answer, and since when (s, monotonic)."""

    def __init__(self) -> None:
        self.silent_since: dict[int, float] = {}
        self._next_check_at = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to look: there may be thousands."""
        return now >= self._next_check_at

    def find_changes(
        self,
        now: float,
        silences: Mapping[int, Callable[[], float]],
        limit_s: float = HOST_AWAY_AFTER_S,
    ) -> tuple[list[int], list[int]]:
        """Who is away since the last look, and who is heard again; ``silences`` say for how long each has
        answered nothing, ``bound`` how long it may (s). What is no stream any more is forgotten."""
        if not self.is_due(now):
            return [], []
        self._next_check_at = now + CHECK_INTERVAL_S
        lost, recovered = [], []
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
