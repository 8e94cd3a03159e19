"""Processes that took the place of others: which is a worker now, and what to say of the last is left."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.protocol.process_keys import split_process_key

LOOKS = 1.0
"""Seconds by which the end of a process may be seen later than the one after it."""
TOLD = 2.0
"""Seconds from the end of a process until the rules have said what there is to say of it."""


class ProcessReplacements:
    """Over the ``records`` of a job by pid, and the pids of its own ``workers``, of which it takes those that
    are gone; ``steps`` were made by processes that are forgotten."""

    def __init__(self, records: dict[int, ProcessRecord], workers: set[int]) -> None:
        self._records = records
        self._workers = workers
        self._begun: set[int] = set()
        self._replaced: set[int] = set()
        self._judged: set[int] = set()
        self._ended: set[int] = set()
        self.dropped_steps = 0

    def begin_process(self, worker: int) -> float | None:
        """Another process is this worker now; when the one before it ended, None where it is the first."""
        if worker not in self._begun:  # the first of thousands need no look at all others
            self._begun.add(worker)
            return None
        return self.replace_process(worker)

    def replace_process(self, worker: int) -> float | None:
        """As `begins`, of a worker that is known to have had a process before."""
        before = {p: r for p, r in self._records.items() if r.worker == worker}
        self._replace(before)
        return max((r.exit.at for r in before.values() if r.exit is not None), default=None)

    def mark_ended(self, pid: int) -> None:
        """This one has, or is not seen any more."""
        self._ended.add(pid)

    def mark_declared(self, new: ProcessRecord) -> None:
        """Launchers start ranks again by themselves (torchrun --max-restarts), all of them at once: where it
        declares the rank of one that had ended under the same launcher, who had ended there by then is
        of the round before, also a rank that does not come back."""
        before = [r for pid in self._ended if (r := self._records.get(pid)) is not None]
        before = [r for r in before if _launched_alike(r, new)]
        same = {r.pid for r in before if _rank(r) == _rank(new) and _before(r, new, LOOKS)}
        if same:
            self._replace(same | {r.pid for r in before if _before(r, new, 0.0)})

    def mark_judged(self, now: float) -> None:
        """The rules have looked: of whom they have had the time for, they have said all."""
        for pid in self._replaced:
            end = self._records[pid].exit
            if end is not None and now - end.at > SAME_CAUSE_WINDOW_S:
                self._judged.add(pid)

    def drop_judged(self, now: float) -> None:
        """Whose place another has taken stays until the rules have said how it ended."""
        for pid in tuple(self._replaced):
            record = self._records[pid]
            judged = pid in self._judged and record.exit is not None
            if record.exit is None or (judged and now - record.exit.at >= TOLD):
                self.drop_process(pid)
                self.dropped_steps += record.box.step if record.box is not None else 0

    def drop_process(self, pid: int) -> None:
        """Nothing is known of this one any more."""
        del self._records[pid]
        self._replaced.discard(pid)
        self._judged.discard(pid)
        self._ended.discard(pid)

    def _replace(self, pids: Iterable[int]) -> None:
        self._replaced.update(pids)
        self._workers -= self._replaced


def _launched_alike(one: ProcessRecord, other: ProcessRecord) -> bool:
    same = (
        one.worker == other.worker
        and split_process_key(one.pid)[0] == split_process_key(other.pid)[0]
    )
    return same and one.pid != other.pid and _rank(one) >= 0


def _before(one: ProcessRecord, other: ProcessRecord, slack: float) -> bool:
    return one.exit is not None and one.exit.at <= other.started_at + slack


def _rank(one: ProcessRecord) -> int:
    """What it declared; -1 of one that did not."""
    told = one.box.declared if one.box is not None else None
    return told.rank if told is not None else -1
