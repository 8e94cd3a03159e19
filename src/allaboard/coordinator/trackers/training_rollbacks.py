"""When a training goes back, by the framework's own step numbers, over all members and their restarts.

The number lies in one variable that all trainers read. It only rises, until the variables are restored or
made anew. So a trainer that reads less than before shows that it happened; the others show the same a little
later.
"""

from __future__ import annotations

import msgspec

from allaboard.facts import Numbered, Setback, Who


class TrainingRollbacks:
    """Finds rollbacks. An epoch is the time between two of them."""

    def __init__(self) -> None:
        self.highest_step: int | None = None
        """The highest number that was read in this epoch."""
        self.rollbacks: list[Setback] = []
        self._epoch = 0
        self._at_start: dict[int, tuple[int | None, int]] = {}
        """Process to the highest step, and the epoch, when it was started."""
        self._readings: dict[int, tuple[int, Numbered]] = {}
        """Process to its last reading, and the epoch in which it came."""
        self._failures: dict[Who, tuple[str, float]] = {}
        """Task that failed since the last rollback, to how it ended and when (s)."""

    def note_process_start(self, pid: int) -> None:
        """Remember what a new process can read at the least."""
        self._at_start[pid] = self.highest_step, self._epoch

    def note_failure(self, task: Who, description: str, failed_at: float = 0.0) -> None:
        """Remember the end of a task with which steps may be lost, even steps that were made and not
        reported."""
        self._failures[task] = description, failed_at

    def add_step_reading(
        self, sampled_at: float, pid: int, reading: Numbered, trains_since: float = 0.0
    ) -> Setback | None:
        """Take in what a process read. Return the rollback if it is the first to show it, or shows that it
        went further back than earlier readings did."""
        if not self._readings:  # nothing was lost with those that ended before anybody trained
            self._failures = {
                task: (description, t)
                for task, (description, t) in self._failures.items()
                if t >= trains_since
            }
        epoch, previous = self._readings.get(pid, (-1, None))
        if reading == previous:
            return None
        step_before = self._step_before_start(pid, reading) if previous is None else None
        has_fallen = previous is not None and reading.falls > previous.falls
        if has_fallen and epoch == self._epoch:
            step_before = max(reading.high, self.highest_step or 0)
        rollback = None
        if has_fallen and epoch == self._epoch - 1:
            # Another process showed this rollback first.
            rollback = self._deepen_last(reading.low)
        elif step_before is not None:
            low = reading.low if reading.falls else reading.first_number
            self._epoch += 1
            self.highest_step = None
            rollback = self._new_rollback(sampled_at, step_before, low)
        self._readings[pid] = self._epoch, reading
        self.highest_step = max(reading.last_number, self.highest_step or 0)
        return rollback

    def _step_before_start(self, pid: int, reading: Numbered) -> int | None:
        """Return the number before a rollback that this process shows by its first reading; None if it shows
        none."""
        step_at_start, epoch = self._at_start.get(pid, (None, self._epoch))
        is_back = (
            step_at_start is not None
            and epoch == self._epoch
            and reading.first_number < step_at_start
        )
        return self.highest_step if is_back else None

    def _deepen_last(self, low: int) -> Setback | None:
        """Return the last rollback with a lower step, where the first step of another process after it was
        earlier; None if it was not."""
        last_rollback = self.rollbacks[-1]
        if low >= last_rollback.low:
            return None
        self.rollbacks[-1] = msgspec.structs.replace(last_rollback, low=low)
        return self.rollbacks[-1]

    def _new_rollback(self, noticed_at: float, high: int, low: int) -> Setback:
        description = "; ".join(
            f"{task.name} {description}" for task, (description, _) in self._failures.items()
        )
        rollback = Setback(
            went_back_at=noticed_at, high=high, low=low, who=tuple(self._failures), how=description
        )
        self._failures.clear()
        self.rollbacks.append(rollback)
        return rollback
