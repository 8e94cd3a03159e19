"""When a training goes back: the framework's own numbers of steps, over all members and their returns.

The number lies in one variable that all read, and only rises, until the variables are restored or made
anew. So whoever reads less than before sees that it happened; all others see the same a little later.
"""

from __future__ import annotations

import msgspec

from allaboard.facts import Numbered, Setback, Who


class TrainingRollbacks:
    """``top`` is the highest number that was seen since the last setback."""

    def __init__(self) -> None:
        self.highest_step: int | None = None
        self.rollbacks: list[Setback] = []
        self._epoch = 0
        self._began: dict[int, tuple[int | None, int]] = {}
        self._seen: dict[int, tuple[int, Numbered]] = {}
        self._ended: dict[Who, tuple[str, float]] = {}

    def note_process_start(self, pid: int) -> None:
        """A process was started, and reads nothing older than what is known now."""
        self._began[pid] = self.highest_step, self._epoch

    def note_failure(self, who: Who, how: str, at: float = 0.0) -> None:
        """Somebody has failed with whom steps may be lost; they may have been made and not been heard of."""
        self._ended[who] = how, at

    def add_step_reading(
        self, at: float, pid: int, told: Numbered, began: float = 0.0
    ) -> Setback | None:
        """What a process read that trains since ``began``; the setback, where it is the first to see one, or
        saw it go further back than who was heard before it."""
        if not self._seen:  # nothing was lost with whom ended before
            self._ended = {w: (how, t) for w, (how, t) in self._ended.items() if t >= began}
        epoch, before = self._seen.get(pid, (-1, None))
        if told == before:
            return None
        high = self._before(pid, told) if before is None else None
        if before is not None and told.falls > before.falls and epoch == self._epoch:
            high = max(told.high, self.highest_step or 0)
        found = None
        if before is not None and told.falls > before.falls and epoch == self._epoch - 1:
            found = self._deeper(told.low)
        elif high is not None:
            low = told.low if told.falls else told.first
            self._epoch += 1
            self.highest_step = None
            found = self._made(at, high, low)
        self._seen[pid] = self._epoch, told
        self.highest_step = max(told.last, self.highest_step or 0)
        return found

    def _before(self, pid: int, told: Numbered) -> int | None:
        """The number before a setback that this process shows by its first reading."""
        base, epoch = self._began.get(pid, (None, self._epoch))
        back = base is not None and epoch == self._epoch and told.first < base
        return self.highest_step if back else None

    def _deeper(self, low: int) -> Setback | None:
        """The last setback, where somebody else's first run after it was an earlier one."""
        last = self.rollbacks[-1]
        if low >= last.low:
            return None
        self.rollbacks[-1] = msgspec.structs.replace(last, low=low)
        return self.rollbacks[-1]

    def _made(self, at: float, high: int, low: int) -> Setback:
        how = "; ".join(f"{who.name} {how}" for who, (how, _) in self._ended.items())
        found = Setback(at=at, high=high, low=low, who=tuple(self._ended), how=how)
        self._ended.clear()
        self.rollbacks.append(found)
        return found
