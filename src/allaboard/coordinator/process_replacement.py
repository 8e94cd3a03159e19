"""Processes that took the place of others: which one is a worker now, and when the earlier one is
forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.protocol.process_keys import split_process_key

MAX_EXIT_LAG_S = 1.0
"""How much later the exit of a process may be seen than the start of its successor."""
EXIT_REPORT_S = 2.0
"""Time from the exit of a process until the rules have reported what there is to report of it."""


class ProcessReplacements:
    """Keeps the ``records`` of a job (by pid) and the pids of its own ``workers`` free of processes that
    others replaced. ``dropped_steps`` were made by processes that are forgotten."""

    def __init__(self, records: dict[int, ProcessRecord], workers: set[int]) -> None:
        self._records = records
        self._workers = workers
        self._started_workers: set[int] = set()
        self._replaced: set[int] = set()
        self._judged: set[int] = set()
        """Replaced processes on whose exits the rules have had the time to report."""
        self._ended: set[int] = set()
        self.dropped_steps = 0

    def begin_process(self, worker: int) -> float | None:
        """Note that a process was started as this worker. Return when the one before it exited; None if it is
        the first."""
        if worker not in self._started_workers:  # spare the first process of thousands a search
            self._started_workers.add(worker)
            return None
        return self.replace_process(worker)

    def replace_process(self, worker: int) -> float | None:
        """Do as `begin_process` for a worker that is known to have had a process before."""
        earlier = {p: r for p, r in self._records.items() if r.worker == worker}
        self._replace(earlier)
        return max((r.exit.ended_at for r in earlier.values() if r.exit is not None), default=None)

    def mark_ended(self, pid: int) -> None:
        """Note that this process exited, or is not seen any more."""
        self._ended.add(pid)

    def mark_declared(self, record: ProcessRecord) -> None:
        """Note that a process declared its rank, and find the processes that it and its siblings replaced.

        Launchers restart ranks by themselves (torchrun --max-restarts), all of them at once. If the process
        declares the rank of one that had exited under the same launcher, all that had exited there by then
        are of the round before, a rank that does not come back among them.
        """
        ended = [r for pid in self._ended if (r := self._records.get(pid)) is not None]
        siblings = [r for r in ended if _has_same_launcher(r, record)]
        predecessors = {
            r.pid
            for r in siblings
            if _declared_rank(r) == _declared_rank(record)
            and _exited_before_start(r, record, MAX_EXIT_LAG_S)
        }
        if predecessors:
            self._replace(
                predecessors | {r.pid for r in siblings if _exited_before_start(r, record, 0.0)}
            )

    def mark_judged(self, now: float) -> None:
        """Note that the rules were run: on exits that are old enough they have reported all."""
        for pid in self._replaced:
            process_exit = self._records[pid].exit
            if process_exit is not None and now - process_exit.ended_at > SAME_CAUSE_WINDOW_S:
                self._judged.add(pid)

    def drop_judged(self, now: float) -> None:
        """Forget the replaced processes once the rules have reported how they exited."""
        for pid in tuple(self._replaced):
            record = self._records[pid]
            is_reported = (
                record.exit is not None
                and pid in self._judged
                and now - record.exit.ended_at >= EXIT_REPORT_S
            )
            if record.exit is None or is_reported:
                self.drop_process(pid)
                self.dropped_steps += record.box.step if record.box is not None else 0

    def drop_process(self, pid: int) -> None:
        """Forget all about this process."""
        del self._records[pid]
        self._replaced.discard(pid)
        self._judged.discard(pid)
        self._ended.discard(pid)

    def _replace(self, pids: Iterable[int]) -> None:
        self._replaced.update(pids)
        self._workers -= self._replaced


def _has_same_launcher(earlier: ProcessRecord, record: ProcessRecord) -> bool:
    is_same = (
        earlier.worker == record.worker
        and split_process_key(earlier.pid)[0] == split_process_key(record.pid)[0]
    )
    return is_same and earlier.pid != record.pid and _declared_rank(earlier) >= 0


def _exited_before_start(earlier: ProcessRecord, record: ProcessRecord, max_lag_s: float) -> bool:
    return earlier.exit is not None and earlier.exit.ended_at <= record.started_at + max_lag_s


def _declared_rank(record: ProcessRecord) -> int:
    """Return the rank that the process declared; -1 if it declared none."""
    declared = record.box.declared if record.box is not None else None
    return declared.rank if declared is not None else -1
