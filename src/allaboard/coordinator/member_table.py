"""The processes of a job that are known, on all hosts, and what they are to it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from statistics import median

from allaboard.analysis.parameter_servers.parameter_servers import AROUND, of_chief
from allaboard.coordinator.group_disambiguation import separate_same_named_groups
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import Exit, Member
from allaboard.protocol.process_keys import split_process_key


class MemberTable:
    """``records`` by pid, ``workers``: which of those this agent has started. ``wrapped``: the one worker is
    somebody else's launcher."""

    def __init__(self, wrapped: bool) -> None:
        self.wrapped = wrapped
        self.records: dict[int, ProcessRecord] = {}
        self.workers: set[int] = set()

    def all_members(self) -> tuple[Member, ...]:
        """As rules and faces read them."""
        ordered = sorted(self.records.values(), key=_ORDER)
        launchers = self.launcher_pids()
        members = tuple(
            [r.to_member(r.pid in launchers) for r in ordered]
            if launchers
            else [r.to_member(False) for r in ordered]
        )
        return of_chief(separate_same_named_groups(members))

    def launcher_pids(self) -> set[int]:
        """Workers that declared nothing themselves and whose children are the members, on all hosts."""
        ours = [r for p in self.workers if (r := self.records.get(p)) is not None]
        there = [r for p, r in self.records.items() if r.started and split_process_key(p)[0]]
        silent = [r for r in ours + there if not r.has_declared]
        wrapped = self.wrapped
        found = {r.pid for r in silent if (r.wraps if split_process_key(r.pid)[0] else wrapped)}
        if len(found) < len(silent):
            above = {r.worker for r in self.records.values() if r.has_declared}
            found |= {r.pid for r in silent if r.worker in above}
        return found

    @property
    def median_step(self) -> float | None:
        """The job's median step (s): the median of its members' own; None before three steps."""
        timed = [r for r in self.records.values() if r.box is not None and r.box.intervals]
        intervals = [i for r in timed if (i := r.median_interval) is not None]
        return median(intervals) if intervals else None

    def exit_of(self, worker: int) -> Exit | None:
        """How this worker ended, if it has; None too where allaboard ended it."""
        ends = [
            r.exit for r in self.records.values() if r.worker == worker and r.pid in self.workers
        ]
        found = next((e for e in reversed(ends) if e is not None), None)
        return None if found is None or found.ours else found

    def worker_exits(self, everywhere: bool) -> Iterator[Exit]:
        """Of the workers of this host; of all hosts, ``everywhere``. An evaluator counts where it is alone:
        beside a training it is that which fails, or does not."""
        found = {
            record: record.exit
            for pid, record in self.records.items()
            if record.exit and (pid in self.workers or (everywhere and split_process_key(pid)[0]))
        }
        part = [end for record, end in found.items() if record.job_name not in AROUND]
        yield from part or found.values()


_ORDER = attrgetter("worker", "rank", "pid")
