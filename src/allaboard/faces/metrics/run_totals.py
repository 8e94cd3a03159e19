"""What adds up over a run, from one snapshot to the next: steps, waiting, goodput. Pure: the time is that of
the snapshots."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from allaboard.faces.metrics.step_histogram import StepHistogram, step_durations
from allaboard.facts import Activity, Point, RankState, Snapshot

MAX_INTERVAL_S = 30.0
"""Longest time between two snapshots that a share of waiting stands for: beyond, the feed was not read."""
WAITING_ACTIVITIES = {
    Activity.AT_GATE: "roll-call",
    Activity.JOINING: "init",
    Activity.CHECKPOINT: "checkpoint",
    Activity.EVALUATION: "evaluation",
}
"""What a rank waits for that does no steps."""


class _ProcessProgress(NamedTuple):
    step: int
    stepped_at: float | None
    """Seconds since the run began, when a new step was last seen; None before the first."""


def rank_label(state: RankState) -> str:
    """Return what tells a rank from others in the metrics: its number, else its name."""
    return str(state.rank) if state.rank >= 0 else state.name


class RunTotals:
    """Sums over all snapshots so far. A rank whose process is replaced keeps its sums."""

    def __init__(self) -> None:
        self.step_seconds = StepHistogram()
        """Durations of the steps of all ranks."""
        self.steps: dict[str, int] = defaultdict(int)
        """Steps by rank."""
        self.waiting_s: dict[tuple[str, str], float] = defaultdict(float)
        """Seconds of waiting, by rank and by what it waited for."""
        self.productive_s = 0.0
        """Seconds of the run that went into steps."""
        self._processes: dict[tuple[str, int, str], _ProcessProgress] = {}
        self._elapsed_s: float | None = None

    def add_course(self, points: tuple[Point, ...]) -> None:
        """Take in the course of a job that began before it was watched; later ones are known already."""
        if self._elapsed_s is not None:
            return
        for earlier, later in pairwise(points):
            self.productive_s += max(0, later.step - earlier.step) * (later.step_s or 0.0)

    def add(self, snapshot: Snapshot) -> None:
        """Take in a snapshot. One that is not newer than the last one changes nothing."""
        elapsed_s = snapshot.run.elapsed_s
        if self._elapsed_s is not None and elapsed_s <= self._elapsed_s:
            return
        is_first = self._elapsed_s is None
        interval_s = 0.0 if self._elapsed_s is None else elapsed_s - self._elapsed_s
        self._elapsed_s = elapsed_s
        made_steps = []
        processes = {}
        for state in snapshot.ranks:
            key = state.host, state.pid, state.name
            earlier = self._processes.get(key)
            processes[key], new_steps = self._add_rank(state, earlier, elapsed_s, is_first)
            self._add_waiting(state, min(interval_s, MAX_INTERVAL_S))
            if new_steps:
                made_steps.append(new_steps)
        self._processes = processes
        if made_steps and not is_first:
            self.productive_s += fmean(made_steps) * (snapshot.run.step_s or 0.0)

    def goodput(self) -> float:
        """Return the share of the run's time that went into steps."""
        elapsed_s = self._elapsed_s
        return min(1.0, self.productive_s / elapsed_s) if elapsed_s else 0.0

    def _add_rank(
        self, state: RankState, earlier: _ProcessProgress | None, elapsed_s: float, is_first: bool
    ) -> tuple[_ProcessProgress, int]:
        """Count the new steps of a process; return its progress and how many they are."""
        known_steps = earlier.step if earlier is not None else 0
        stepped_at = earlier.stepped_at if earlier is not None else None
        new_steps = max(0, state.step - known_steps)
        self.steps[rank_label(state)] += new_steps
        if new_steps and not is_first:
            pause_s = elapsed_s - stepped_at if stepped_at is not None else None
            self.step_seconds.add(step_durations(new_steps, state.step_s, pause_s))
        return _ProcessProgress(state.step, elapsed_s if new_steps else stepped_at), new_steps

    def _add_waiting(self, state: RankState, interval_s: float) -> None:
        if state.end or not interval_s:
            return
        rank = rank_label(state)
        reason = WAITING_ACTIVITIES.get(state.activity)
        if reason is not None:
            self.waiting_s[rank, reason] += interval_s
            return
        self.waiting_s[rank, "ranks"] += interval_s * state.waiting
        self.waiting_s[rank, "data"] += interval_s * state.input
