"""The processes of a job as events tell of them: their records begin, are sampled and end."""

from __future__ import annotations

from allaboard.analysis.parameter_servers import SERVER_JOBS, describe_exit, find_chief_task
from allaboard.coordinator.job_memory import JobMemory
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.coordinator.trackers.interning import InternPool
from allaboard.facts import Exit, Phase
from allaboard.protocol.events import ProcessExited, ProcessSampled, WorkerLaunched
from allaboard.protocol.process_keys import split_process_key


class ProcessRecorder:
    """Writes what is reported of single processes into the memory of a job."""

    def __init__(self, memory: JobMemory, intern_pool: InternPool) -> None:
        self._memory = memory
        self._intern_pool = intern_pool
        self.last_arrival_at = memory.launched_at
        """When the last member arrived at the gate (s)."""

    def begin_worker(self, event: WorkerLaunched) -> None:
        """Begin the record of a worker that this agent, or another, launched."""
        memory = self._memory
        predecessor_ended_at = memory.replacements.begin_process(event.worker)
        has_local_ranks = memory.settings.launched > 1
        rank = event.worker if has_local_ranks else memory.settings.rank
        memory.records[event.pid] = self._new_record(
            event.pid, event.worker, event.launched_at, rank
        )
        memory.records[event.pid].predecessor_ended_at = predecessor_ended_at
        memory.rollbacks.note_process_start(event.pid)
        # Agent 0 is our own: see `process_keys`.
        if not split_process_key(event.pid)[0]:
            memory.local_workers.add(event.pid)

    def add_sample(self, event: ProcessSampled) -> None:
        """Take in one sample of a process, and begin its record if it is the first."""
        memory = self._memory
        record = memory.records.get(event.pid)
        if record is None:
            predecessor_ended_at = self._end_of_remote_predecessor(event)
            rank = self._rank(event)
            record = self._new_record(event.pid, event.worker, event.sampled_at, rank, event.host)
            record.predecessor_ended_at = predecessor_ended_at
            memory.records[event.pid] = record
        box = self._intern_pool.intern_box(event.box, record.box)
        had_declared = record.box is not None and record.box.declared is not None
        if record.add_sample(event, box):
            self._note_progress(event.sampled_at)
            if box is not None and box.phase == Phase.ARRIVED:
                self.last_arrival_at = max(self.last_arrival_at, box.phase_since)
        if not had_declared and record.box is not None and record.box.declared is not None:
            memory.replacements.mark_declared(record)
        self._note_step_number(event)
        if box is not None and box.step:
            memory.step_distribution.add_steps(event.pid, box.step, box.intervals)

    def end_process(self, event: ProcessExited, is_lost: bool = False) -> None:
        """Note that a process exited, or, if ``is_lost``, that nothing is seen of it any more."""
        memory = self._memory
        record = memory.records.get(event.pid)
        if record is None or record.exit is not None:
            return
        memory.replacements.mark_ended(event.pid)
        memory.step_distribution.stop_following(event.pid)
        is_ended_by_us = (
            memory.ending is not None
            or bool(memory.interrupted_by)
            or record.interrupted is not None
            or bool(memory.task_restarts.kill_reason(event.pid))
        )
        process_exit = Exit(
            ended_at=event.exited_at,
            code=event.code,
            signal=event.signal,
            oom=event.oom,
            ours=is_ended_by_us,
            last_line=event.last_line,
            lost=is_lost,
        )
        record.mark_exited(process_exit, is_lost)
        # Of a process that is only not seen any more it is not known whether it has ended.
        if event.signal is not None or event.code is not None:
            self._may_roll_back(record)
        memory.resource_trends.forget_process(record.host, split_process_key(record.pid)[1])
        self._note_progress(event.exited_at)

    def _new_record(
        self, pid: int, worker: int, started_at: float, rank: int, host: str = ""
    ) -> ProcessRecord:
        settings = self._memory.settings
        self._note_progress(started_at)
        task = settings.tasks[worker] if settings.tasks and worker >= 0 else None
        record = ProcessRecord(pid, worker, host or settings.host, started_at, rank, task)
        record.interrupted = self._memory.interruptions.interrupted_at(split_process_key(pid)[0])
        return record

    def _rank(self, event: ProcessSampled) -> int:
        """Return the rank of the process's environment, else that of its agent; -1 if neither is known."""
        agent = self._memory.other_hosts.agents.get(split_process_key(event.pid)[0])
        return agent.rank if event.rank < 0 and agent is not None and agent.agent else event.rank

    def _end_of_remote_predecessor(self, event: ProcessSampled) -> float | None:
        """Return when the process ended that this one replaces on another host; None if it replaces none. A
        restart on another host is not reported: the new process is just there."""
        memory = self._memory
        if (
            not split_process_key(event.pid)[0]
            or event.worker not in memory.task_restarts.awaited_workers
        ):
            return None
        memory.task_restarts.awaited_workers.discard(event.worker)
        return memory.replacements.replace_process(event.worker)

    def _may_roll_back(self, record: ProcessRecord) -> None:
        """Remember an exit that may set the training back: the variables lie in servers, and the chief
        restores all of them when it comes back."""
        assert record.exit is not None
        memory = self._memory
        identity = record.to_member(False).who
        chief = find_chief_task(r.to_member(False) for r in memory.records.values())
        if identity.job in SERVER_JOBS or (identity.job, identity.index) == chief:
            how = memory.task_restarts.kill_reason(record.pid) or describe_exit(record.exit)
            memory.rollbacks.note_failure(identity, how, record.exit.ended_at)

    def _note_step_number(self, event: ProcessSampled) -> None:
        box = event.box
        if box is None or box.numbered is None:
            return
        memory = self._memory
        rollback = memory.rollbacks.add_step_reading(
            event.sampled_at, event.pid, box.numbered, box.phase_since
        )
        if rollback is not None:
            memory.task_restarts.note_rollback(rollback)

    def _note_progress(self, progress_at: float) -> None:
        self._memory.progress_at = max(self._memory.progress_at, progress_at)
        self._memory.stall_detector.note_progress()
