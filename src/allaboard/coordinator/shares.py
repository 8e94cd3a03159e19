"""Where a process spends its time: from looks of some seconds, each of which costs nothing more."""

from __future__ import annotations

from allaboard.facts import Load

SPAN = 10.0
"""Seconds that are looked back on."""

NONE = Load()

Mark = tuple[float, float, float, float]
"""When, CPU time so far (s), time inside operations so far (s), of it waiting for the chief (s)."""


class Shares:
    """Looks of the last SPAN s, and the first one of its work."""

    __slots__ = ("_allowed", "_begin", "_chief", "_for_chief", "_last", "_looks")

    def __init__(self) -> None:
        self._looks: list[Mark] = []  # a deque takes ten times as much while there are few
        self._begin: Mark | None = None
        self._last: Mark | None = None
        self._allowed = 0.0
        self._chief = 0.0
        self._for_chief = False

    def add(
        self, at: float, cpu: float, inside: float, allowed: float, works: bool,
        for_chief: bool = False,
    ) -> None:  # fmt: skip
        """Takes in one look. ``works``: it trains or serves, and does not start up any more;
        ``for_chief``: it waits for the chief to initialise."""
        if self._for_chief and self._last is not None:
            self._chief += max(0.0, at - self._last[0])
        self._for_chief = for_chief
        self._last = at, cpu, inside, self._chief
        if allowed != self._allowed:
            self._looks.clear()  # what was used before says nothing of what may be used now
        self._allowed = allowed
        if works and self._begin is None:
            self._begin = self._last
            self._looks.clear()  # a start has a pace of its own
        self._looks.append(self._last)
        while self._looks[0][0] < at - SPAN:
            self._looks.pop(0)

    def clear(self) -> None:
        """Forgets what was measured while the observer was not scheduled."""
        self._looks.clear()

    @property
    def load(self) -> Load:
        """Of the last seconds."""
        return self._between(self._looks[0], self._looks[-1]) if self._looks else NONE

    @property
    def run(self) -> Load:
        """Since its work began."""
        return self._between(self._begin, self._last) if self._begin and self._last else NONE

    def _between(self, first: Mark, last: Mark) -> Load:
        span = last[0] - first[0]
        if span <= 0:
            return NONE
        inside = min(1.0, max(0.0, last[2] - first[2]) / span)
        return Load(
            span=span,
            cpu=max(0.0, last[1] - first[1]) / span,
            allowed=self._allowed,
            inside=inside,
            chief=min(inside, (last[3] - first[3]) / span),
        )
