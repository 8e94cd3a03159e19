"""The processes of a job, on all hosts, and what they are to it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from statistics import median

from allaboard.analysis.parameter_servers import AUXILIARY_JOBS, mark_workers_of_chief
from allaboard.coordinator.group_disambiguation import separate_same_named_groups
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Exit, Member
from allaboard.protocol.process_keys import split_process_key


class MemberTable:
    """``records`` by pid; ``workers`` are the pids that this agent has started. ``wrapped``: the one worker
    is somebody else's launcher."""

    def __init__(self, wrapped: bool) -> None:
        self.wrapped = wrapped
        self.records: dict[int, ProcessRecord] = {}
        self.workers: set[int] = set()

    def all_members(self) -> tuple[Member, ...]:
        """Return the frozen pictures of all processes, as rules and faces read them."""
        ordered = sorted(self.records.values(), key=_ORDER)
        launchers = self.launcher_pids()
        members = tuple(
            [r.to_member(r.pid in launchers) for r in ordered]
            if launchers
            else [r.to_member(False) for r in ordered]
        )
        return mark_workers_of_chief(separate_same_named_groups(members))

    def launcher_pids(self) -> set[int]:
        """Return the workers, on all hosts, that declared nothing themselves and whose children are the
        members."""
        local = [r for p in self.workers if (r := self.records.get(p)) is not None]
        remote = [r for p, r in self.records.items() if r.started and split_process_key(p)[0]]
        silent = [r for r in local + remote if not r.has_declared]
        wrapped = self.wrapped
        launchers = {r.pid for r in silent if (r.wraps if split_process_key(r.pid)[0] else wrapped)}
        if len(launchers) < len(silent):
            # A member that an agent started itself is no child: it is the one before a restart.
            children = [r for r in self.records.values() if r.has_declared and not r.started]
            parents = {child.worker for child in children}
            launchers |= {r.pid for r in silent if r.worker in parents}
        return launchers

    @property
    def median_step(self) -> float | None:
        """The job's median step (s): the median of its members' medians; None before three steps."""
        timed = [r for r in self.records.values() if r.box is not None and r.box.intervals]
        intervals = [i for r in timed if (i := r.median_interval) is not None]
        return median(intervals) if intervals else None

    def exit_of(self, worker: int) -> Exit | None:
        """Return how this worker exited; None if it has not, or if allaboard ended it."""
        exits = [
            r.exit for r in self.records.values() if r.worker == worker and r.pid in self.workers
        ]
        last_exit = next((e for e in reversed(exits) if e is not None), None)
        return None if last_exit is None or last_exit.ours else last_exit

    def worker_exits(self, everywhere: bool) -> Iterator[Exit]:
        """Yield the exits of the workers of this host; of all hosts if ``everywhere``.

        An evaluator counts only if it is alone: beside a training it is the training that fails, or does not.
        """
        exits = {
            record: record.exit
            for pid, record in self.records.items()
            if record.exit and (pid in self.workers or (everywhere and split_process_key(pid)[0]))
        }
        trainer_exits = [e for record, e in exits.items() if record.job_name not in AUXILIARY_JOBS]
        yield from trainer_exits or exits.values()


_ORDER = attrgetter("worker", "rank", "pid")
