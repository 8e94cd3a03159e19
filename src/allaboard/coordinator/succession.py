"""Processes that took the place of others: which is a worker now, and what to say of the last is left."""

from __future__ import annotations

from allaboard.coordinator.record import Record
from allaboard.evidence.failures import TOGETHER

TOLD = 2.0
"""Seconds from the end of a process until the rules have said what there is to say of it."""


class Succession:
    """Over the ``records`` of a job by pid, and the pids of its own ``workers``, of which it takes those that
    are gone; ``steps`` were made by processes that are forgotten."""

    def __init__(self, records: dict[int, Record], workers: set[int]) -> None:
        self._records = records
        self._workers = workers
        self._begun: set[int] = set()
        self._replaced: set[int] = set()
        self._judged: set[int] = set()
        self.steps = 0

    def begins(self, worker: int) -> float | None:
        """Another process is this worker now; when the one before it ended, None where it is the first."""
        if worker not in self._begun:  # the first of thousands need no look at all others
            self._begun.add(worker)
            return None
        return self.follows(worker)

    def follows(self, worker: int) -> float | None:
        """As `begins`, of a worker that is known to have had a process before."""
        before = {p: r for p, r in self._records.items() if r.worker == worker}
        self._replaced |= before.keys()
        self._workers -= self._replaced
        return max((r.exit.at for r in before.values() if r.exit is not None), default=None)

    def judged(self, now: float) -> None:
        """The rules have looked: of whom they have had the time for, they have said all."""
        for pid in self._replaced:
            end = self._records[pid].exit
            if end is not None and now - end.at > TOGETHER:
                self._judged.add(pid)

    def forget(self, now: float) -> None:
        """Whose place another has taken stays until the rules have said how it ended."""
        for pid in tuple(self._replaced):
            record = self._records[pid]
            judged = pid in self._judged and record.exit is not None
            if record.exit is None or (judged and now - record.exit.at >= TOLD):
                del self._records[pid]
                self._replaced.discard(pid)
                self._judged.discard(pid)
                self.steps += record.box.step if record.box is not None else 0
