"""Rates between tasks, from what the kernel counted of each connection. Pure but for its memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

from allaboard.facts import Flow, Flows, Pair

WINDOW_S = 10.0
"""Age up to which samples count."""

Ends = tuple[str, str]
"""Local and remote address of a connection."""


class TrafficRates:
    """The last samples of the connections of one process."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[Ends, Flow]]] = deque()
        self._tasks: dict[Ends, str] = {}
        """Connection to the task at its other end."""
        self._totals: dict[str, tuple[int, int]] = {}
        """Task to the bytes received from it and sent to it so far."""
        self._last_round_trips: dict[str, float] = {}
        """Task to the round trip (s) of the connection that carried the most when there was one."""

    def add_flows(self, sampled_at: float, flows_by_task: tuple[Flows, ...]) -> None:
        """Take in one sample. A connection that is new counts from its first byte."""
        sample = {(f.local, f.remote): f for task in flows_by_task for f in task.flows}
        previous = self._samples[-1][1] if self._samples else {}
        self._tasks = {(f.local, f.remote): task.task for task in flows_by_task for f in task.flows}
        for ends, flow in sample.items():
            earlier = previous.get(ends)
            received, sent = self._totals.get(self._tasks[ends], (0, 0))
            self._totals[self._tasks[ends]] = (
                received + flow.received - (earlier.received if earlier is not None else 0),
                sent + flow.sent - (earlier.sent if earlier is not None else 0),
            )
        for task in flows_by_task:
            if rtt := _main_flow(task.flows).rtt:
                self._last_round_trips[task.task] = rtt
        self._samples.append((sampled_at, sample))
        while self._samples[0][0] < sampled_at - WINDOW_S:
            self._samples.popleft()

    def restart_window(self) -> None:
        """Forget all samples, since the agent was not scheduled for a while; the totals stay."""
        self._samples.clear()

    @property
    def span(self) -> float:
        """Seconds over which the rates are measured."""
        return self._samples[-1][0] - self._samples[0][0] if self._samples else 0.0

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The traffic with each task that the process has exchanged anything with, by name."""
        if not self._samples:
            return ()
        oldest, newest = self._samples[0][1], self._samples[-1][1]
        return tuple(self._pair(task, oldest, newest) for task in sorted(self._totals))

    def _delivery_rate(self, flows: list[Flow], earlier_flows: list[Flow]) -> float:
        """Return the median delivery rate of the connection on which most was sent: small packets reach far
        more than a narrow link takes, and a single sample may show what a few of them reached."""
        busiest = max(
            zip(flows, earlier_flows, strict=True),
            key=lambda p: p[0].sent - p[1].sent,
            default=None,
        )
        if busiest is None:
            return 0.0
        ends = (busiest[0].local, busiest[0].remote)
        rates = [sample[ends].delivers for _, sample in self._samples if ends in sample]
        return median(rates or [0.0])

    def _pair(self, task: str, oldest: dict[Ends, Flow], newest: dict[Ends, Flow]) -> Pair:
        flows = [flow for ends, flow in newest.items() if self._tasks[ends] == task]
        earlier = [oldest.get((f.local, f.remote), Flow(local="", remote="")) for f in flows]
        span = self.span or 1.0
        received, sent = self._totals[task]
        return Pair(
            task=task,
            connections=len(flows),
            received=sum(f.received - e.received for f, e in zip(flows, earlier, strict=True))
            / span,
            sent=sum(f.sent - e.sent for f, e in zip(flows, earlier, strict=True)) / span,
            received_all=received,
            sent_all=sent,
            unread=sum(f.unread for f in flows),
            unsent=sum(f.unsent for f in flows),
            # Of a task that has ended the report still says how far away it was.
            rtt=_main_flow(flows).rtt if flows else self._last_round_trips.get(task, 0.0),
            least=min((f.least for f in flows if f.least > 0), default=0.0),
            busy=min(
                1.0,
                max((f.busy - e.busy for f, e in zip(flows, earlier, strict=True)), default=0)
                / span,
            ),
            delivers=self._delivery_rate(flows, earlier),
        )


def _main_flow(flows: Sequence[Flow]) -> Flow:
    """Return the connection that carried the most, an empty one if there is none. The round trip of one that
    only answers small calls says nothing of a large one."""
    return max(flows, key=lambda f: f.received + f.sent, default=Flow(local="", remote=""))
