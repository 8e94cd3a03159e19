"""From what the kernel counted of each connection to rates between tasks. Pure but for its memory."""

from __future__ import annotations

from collections import deque
from statistics import median

from allaboard.facts import Flow, Flows, Pair

SPAN = 10.0
"""Seconds that are looked back on."""

Ends = tuple[str, str]


class TrafficRates:
    """The last looks at the connections of one process."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, dict[Ends, Flow]]] = deque()
        self._tasks: dict[Ends, str] = {}
        self._all: dict[str, tuple[int, int]] = {}

    def add_flows(self, at: float, many: tuple[Flows, ...]) -> None:
        """Takes in one look. A connection that is new counts from its first byte."""
        now = {(f.local, f.remote): f for each in many for f in each.flows}
        before = self._looks[-1][1] if self._looks else {}
        self._tasks = {(f.local, f.remote): each.task for each in many for f in each.flows}
        for ends, flow in now.items():
            old = before.get(ends)
            received, sent = self._all.get(self._tasks[ends], (0, 0))
            self._all[self._tasks[ends]] = (
                received + flow.received - (old.received if old is not None else 0),
                sent + flow.sent - (old.sent if old is not None else 0),
            )
        self._looks.append((at, now))
        while self._looks[0][0] < at - SPAN:
            self._looks.popleft()

    def restart_window(self) -> None:
        """Forgets what was measured while the observer was not scheduled; sums stay."""
        self._looks.clear()

    @property
    def span(self) -> float:
        """The seconds that the rates are of."""
        return self._looks[-1][0] - self._looks[0][0] if self._looks else 0.0

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """One for each task that it has exchanged anything with, by name."""
        if not self._looks:
            return ()
        first, last = self._looks[0][1], self._looks[-1][1]
        return tuple(self._pair(task, first, last) for task in sorted(self._all))

    def _delivers(self, mine: list[Flow], old: list[Flow]) -> float:
        """Of the connection on which most was sent: small packets meet far more than a narrow way takes,
        and a single look may show what a few of them met."""
        most = max(zip(mine, old, strict=True), key=lambda p: p[0].sent - p[1].sent, default=None)
        if most is None:
            return 0.0
        ends = (most[0].local, most[0].remote)
        return median([look[ends].delivers for _, look in self._looks if ends in look] or [0.0])

    def _pair(self, task: str, first: dict[Ends, Flow], last: dict[Ends, Flow]) -> Pair:
        mine = [flow for ends, flow in last.items() if self._tasks[ends] == task]
        old = [first.get((f.local, f.remote), Flow(local="", remote="")) for f in mine]
        span = self.span or 1.0
        received, sent = self._all[task]
        # The round trip of a connection that only answers small calls says nothing of a large one:
        # that of the connection which carries the most is told.
        main = max(mine, key=lambda f: f.received + f.sent, default=Flow(local="", remote=""))
        return Pair(
            task=task,
            connections=len(mine),
            received=sum(f.received - o.received for f, o in zip(mine, old, strict=True)) / span,
            sent=sum(f.sent - o.sent for f, o in zip(mine, old, strict=True)) / span,
            received_all=received,
            sent_all=sent,
            unread=sum(f.unread for f in mine),
            unsent=sum(f.unsent for f in mine),
            rtt=main.rtt,
            least=min((f.least for f in mine if f.least > 0), default=0.0),
            busy=min(
                1.0,
                max((f.busy - o.busy for f, o in zip(mine, old, strict=True)), default=0) / span,
            ),
            delivers=self._delivers(mine, old),
        )
