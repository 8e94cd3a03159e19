"""The rounds of a run as spans of time, from one snapshot to the next. Pure: the time is that of the
snapshots."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.facts import Snapshot


class RoundSpan(NamedTuple):
    """A round that is over, or the run as a whole."""

    number: int
    """Number of the round, from 0; -1 for the run."""
    started_s: float
    """Seconds since the run began."""
    ended_s: float
    """The same for its end."""
    steps: int
    """Steps of the member that was furthest ahead."""
    failure: str
    """Why it did not end well; "" if it did."""


class RoundTracker:
    """Notices the ends of rounds."""

    def __init__(self) -> None:
        self._number = 0
        self._started_s = 0.0
        self._steps = 0
        self._has_ended = False

    def take_in(self, snapshot: Snapshot) -> list[RoundSpan]:
        """Return the spans that ended with this snapshot."""
        run = snapshot.run
        if self._has_ended:
            return []
        spans = []
        if run.round > self._number:
            reasons = {r.what: r.reason for r in run.restarts}
            failure = reasons.get(f"round {self._number + 1}", "") or "it was started again"
            spans.append(self._round(run.elapsed_s, failure))
            self._number, self._started_s, self._steps = run.round, run.elapsed_s, 0
        self._steps = max(self._steps, run.step_highest)
        if run.outcome:
            self._has_ended = True
            failure = "" if run.outcome == "completed" else run.reason or run.outcome
            spans.append(self._round(run.elapsed_s, failure))
            spans.append(RoundSpan(-1, 0.0, run.elapsed_s, self._steps, failure))
        return spans

    def _round(self, ended_s: float, failure: str) -> RoundSpan:
        return RoundSpan(self._number, self._started_s, ended_s, self._steps, failure)
