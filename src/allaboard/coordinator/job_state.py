"""The state of one job: ``handle(now, *events) -> commands``. It knows no socket, no file and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from allaboard.analysis.collectives.collective_order import members_to_trace
from allaboard.analysis.collectives.swapped_collectives import members_to_trace_for_swaps
from allaboard.analysis.parameter_servers import (
    SERVER_JOBS,
    describe_exit,
    find_chief_task,
)
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.coordinator.group_disambiguation import group_name_in_process
from allaboard.coordinator.job_memory import JobMemory
from allaboard.coordinator.job_status import JobStatus
from allaboard.coordinator.pause_announcements import PauseAnnouncements
from allaboard.coordinator.process_record import ProcessRecord, has_begun_work
from allaboard.coordinator.settings import JobSettings
from allaboard.coordinator.trackers.evaluation_throttle import JOINING_INTERVAL_S
from allaboard.coordinator.trackers.interning import InternPool
from allaboard.facts import Claim, Exit, JobView, Phase, Stage
from allaboard.policy.end.end_policy import START_STAGES
from allaboard.policy.end.verdict import end_verdict
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    EndJob,
    ReportInterruption,
    SampleStacks,
    ShowNote,
    TraceCalls,
)
from allaboard.protocol.events import (
    AgentConnected,
    AgentDisconnected,
    AgentInterrupted,
    AgentOverslept,
    CallsTraced,
    CoordinatorChanged,
    Event,
    FindingReported,
    GateOpened,
    InterruptionReported,
    JobEndOrdered,
    LinksProbed,
    LockWaitsSampled,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    ResourcesMeasured,
    RoleTaken,
    SnapshotTaken,
    StackSampled,
    TrafficSampled,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import split_process_key
from allaboard.rules.engine.catalogue import RuleEntry
from allaboard.rules.engine.evaluate import run_rules

RECONNECT_GRACE_S = 3.0
"""How long a broken agent connection may take to come back before its members count as lost."""

StagedClaims = list[tuple[Stage, Claim]]


class JobState:
    """The state of one job. `handle` is the only way to change it, `status` the only way to read it."""

    def __init__(
        self,
        settings: JobSettings,
        launched_at: float,
        entries: tuple[RuleEntry, ...],
        utc: Callable[[float], str],
    ) -> None:
        self._memory = JobMemory(settings, launched_at, entries, utc)
        self._status = JobStatus(self._memory)
        self._answered_members = 0
        """Members that reported what they run with."""
        self._last_arrival_at = launched_at
        self._intern_pool = InternPool()
        self._pauses = PauseAnnouncements()
        self._is_starting: bool | None = None
        """True while a member has not begun its work; None until it is asked for in this call of `handle`."""

    @property
    def status(self) -> JobStatus:
        """The read-only view of the job."""
        return self._status

    def handle(self, now: float, *events: Event) -> list[Command]:
        """Take in what happened until ``now`` and return what to do.

        While the leader decides nothing is returned: the leader's coordinator sees the same events.
        """
        memory = self._memory
        self._is_starting = None
        for event in events:
            self._apply(now, event)
        self._note_time_of_end(now)
        self._lose_disconnected_members(now)
        # Also while the leader decides: this state must be up to date the moment the leader is lost.
        memory.replacements.drop_judged(now)
        interruptions = memory.interruptions.take_reports() if memory.settings.joined else []
        if memory.leader_decides:
            return []
        if not self._is_evaluation_due(now, bool(events)):
            # The other hosts must hear of an interruption before their members fall because of it.
            return [*interruptions]
        return self._evaluate(now, interruptions)

    def _evaluate(self, now: float, interruptions: list[ReportInterruption]) -> list[Command]:
        """Run the rules and the policy on the picture of the job, and return what to do."""
        memory = self._memory
        view = memory.last_view = memory.view(now)
        rolls = find_roll_calls(view)
        claims = list(run_rules(view, memory.entries))
        memory.replacements.mark_judged(now)
        staged = [(entry.rule.stage, claim) for entry, claim in claims]
        commands: list[Command] = [*interruptions]
        if not memory.interrupted_by:
            commands += self._announcements(now, view, claims)
        # On several hosts an interrupted agent opens no gate: the others would lose its members at once.
        if memory.ending is None and not (memory.interrupted_by and memory.settings.joined):
            startup_claims = [claim for stage, claim in staged if stage in START_STAGES]
            commands += memory.gate.open_when_complete(now, rolls, startup_claims)
            commands += memory.gate.waiting_notes(view, rolls)
        # Stacks are sampled while a job ends, too: they show why a member does not exit.
        commands += self._samples(view)
        if memory.ending is None and not memory.interrupted_by:
            commands += self._restarts(view)
        if memory.ending is None and not memory.interrupted_by:
            commands += self._verdict(view, rolls, staged)
        self._note_time_of_end(now)
        self._memory.throttle.mark_evaluated(self._stage(now))
        return commands

    def _announcements(
        self, now: float, view: JobView, claims: list[tuple[RuleEntry, Claim]]
    ) -> Iterator[Command]:
        findings = self._memory.findings
        for finding in (
            *findings.new_findings(now, claims),
            *findings.resolved_findings(now, view),
        ):
            yield AnnounceFinding(finding=finding)
        if line := self._pauses.next_line(view):
            yield ShowNote(text=line)

    def _samples(self, view: JobView) -> Iterator[Command]:
        """Ask for the stacks and calls that the analysis lacks."""
        pids = self._memory.stall_detector.pids_to_sample(view)
        if pids and not self._memory.settings.policy.only_observes:
            yield SampleStacks(pids=pids)
        for (group, round_), pids in members_to_trace(view) + members_to_trace_for_swaps(view):
            yield TraceCalls(pids=pids, group=group_name_in_process(group), round=round_)

    def _restarts(self, view: JobView) -> Iterator[Command]:
        """Restart single tasks, or end the job where a task is not to be restarted again."""
        memory = self._memory
        for command in memory.task_restarts.next_commands(view, memory.replacements.dropped_steps):
            yield command
            if isinstance(command, EndJob):
                memory.ending = memory.ending or command

    def _verdict(
        self, view: JobView, rolls: tuple[RollCall, ...], staged: StagedClaims
    ) -> Iterator[Command]:
        memory = self._memory
        decision = end_verdict(view, rolls, staged, memory.settings.policy)
        if decision is not None:
            memory.ending = EndJob(outcome=decision.outcome, reason=decision.reason)
            yield memory.ending

    def _note_time_of_end(self, now: float) -> None:
        """Remember when the end was decided, here or by another host."""
        if self._memory.ending is not None and self._memory.ending_since is None:
            self._memory.ending_since = now

    def _is_evaluation_due(self, now: float, has_news: bool) -> bool:
        """Return True if the job is to be evaluated now: at once if the last member has come, or had its
        time."""
        stage = self._stage(now)
        is_urgent = not has_news or self._memory.interrupted_by
        min_interval_s = 0.0 if stage[0] else JOINING_INTERVAL_S
        members = 0 if is_urgent else len(self._memory.records)
        return self._memory.throttle.is_evaluation_due(now, members, stage, min_interval_s)

    def _stage(self, now: float) -> tuple[bool, ...]:
        """Return conditions whose change an evaluation must not wait for; the first: all have reported what
        they run with."""
        memory = self._memory
        declared = next(
            (r.box.declared for r in memory.records.values() if r.box and r.box.declared), None
        )
        return (
            declared is not None and self._answered_members >= declared.world_size,
            now >= self._last_arrival_at + memory.settings.timeout,
            memory.other_hosts.probes_asked_at is None,
            bool(memory.other_hosts.probing_agents),
            memory.ending is None,
        )

    def _apply(self, now: float, event: Event) -> None:
        memory = self._memory
        match event:  # the most frequent events of thousands of hosts come first
            case ProcessSampled():
                self._process_sampled(event)
            case MemberFactsReported():
                # An event may still be under way when its process has been forgotten.
                if event.pid in memory.records:
                    self._answered_members += not memory.records[event.pid].facts
                    memory.records[event.pid].set_facts(
                        *self._intern_pool.intern_facts(event.facts)
                    )
            case AgentConnected() | LinksProbed():
                self._other_hosts_changed(event)
            case WorkerLaunched():
                self._worker_launched(event)
            case ProcessExited():
                self._process_exited(event)
            case StackSampled():
                if event.pid in memory.records:
                    memory.records[event.pid].add_stack(event)
            case TrafficSampled():
                if event.pid in memory.records:
                    memory.records[event.pid].add_traffic(event)
            case CallsTraced():
                if event.pid in memory.records:
                    memory.records[event.pid].add_call_trace(event.traced)
            case ResourcesMeasured():
                self._resources_measured(event)
            case LockWaitsSampled():
                memory.lock_waits[event.agent] = event.waits
            case AgentInterrupted():
                self._agent_interrupted(now, event)
            case SnapshotTaken():
                memory.task_restarts.add_snapshot(event)
            case AgentOverslept():
                self._restart_windows(now)
            case (
                CoordinatorChanged()
                | GateOpened()
                | JobEndOrdered()
                | FindingReported()
                | InterruptionReported()
            ):
                self._leader_decided(event)
            case _:  # everything else is about other hosts
                self._other_hosts_changed(event)

    def _leader_decided(
        self,
        event: CoordinatorChanged
        | GateOpened
        | JobEndOrdered
        | FindingReported
        | InterruptionReported,
    ) -> None:
        """Remember what another coordinator decided for this host, so that this one can go on from there."""
        memory = self._memory
        match event:
            case CoordinatorChanged():
                memory.leader_decides = not event.is_local
            case GateOpened():
                memory.gate.mark_opened(event.opened_at)
            case JobEndOrdered():
                memory.ending = memory.ending or EndJob(
                    outcome=event.outcome, reason=event.reason, final=event.final
                )
            case FindingReported():
                memory.findings.add_reported_finding(event.finding)
            case InterruptionReported():
                memory.interruptions.add_reported_interruption(event.interruption)

    def _restart_windows(self, now: float) -> None:
        """Forget what was measured while the agent was not scheduled: it proves nothing."""
        memory = self._memory
        memory.progress_at = now
        memory.findings.hold_resolutions(now)
        memory.resource_trends.restart_window()
        for record in memory.records.values():
            record.restart_windows(now)

    def _worker_launched(self, event: WorkerLaunched) -> None:
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

    def _process_sampled(self, event: ProcessSampled) -> None:
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
                self._last_arrival_at = max(self._last_arrival_at, box.phase_since)
        if not had_declared and record.box is not None and record.box.declared is not None:
            memory.replacements.mark_declared(record)
        self._note_step_number(event)

    def _other_hosts_changed(self, event: Event) -> None:
        memory = self._memory
        memory.other_hosts.apply_event(event)
        if isinstance(event, RoleTaken) and not event.leads:
            self._drop_remote_members()
        if isinstance(event, AgentDisconnected):
            memory.disconnected_agents[event.agent] = event.disconnected_at
        elif isinstance(event, AgentConnected):
            memory.disconnected_agents.pop(event.agent, None)

    def _agent_interrupted(self, now: float, event: AgentInterrupted) -> None:
        memory = self._memory
        if not event.agent:
            memory.interrupted_by = memory.interrupted_by or event.signal
        on_host = [r for p, r in memory.records.items() if split_process_key(p)[0] == event.agent]
        launchers = memory.members.launcher_pids()
        for record in on_host if event.agent else ():
            record.mark_interrupted(event.interrupted_at)
        members = (r.to_member(r.pid in launchers) for r in on_host)
        host = event.host or memory.settings.host
        memory.interruptions.add_interruption(now, event, members, host)

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

    def _drop_remote_members(self) -> None:
        """Forget the members of other hosts: another host leads now, and nothing more is heard of them."""
        memory = self._memory
        for pid in [p for p in memory.records if split_process_key(p)[0]]:
            memory.replacements.drop_process(pid)
        memory.disconnected_agents.clear()

    def _resources_measured(self, event: ResourcesMeasured) -> None:
        """Follow what is used once all members train, or serve: during a start it changes in another way."""
        memory = self._memory
        if self._is_starting is None:  # asked once for all hosts whose events came together
            boxes = [r.box for r in memory.records.values() if r.box is not None and r.exit is None]
            self._is_starting = any(not has_begun_work(b) for b in boxes if b.declared is not None)
        if self._is_starting:
            memory.resource_trends.restart_window()
        else:
            host = event.host or memory.settings.host
            memory.resource_trends.add_readings(event.measured_at, host, event.readings)

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

    def _rank(self, event: ProcessSampled) -> int:
        """Return the rank of the process's environment, else that of its agent; -1 if neither is known."""
        agent = self._memory.other_hosts.agents.get(split_process_key(event.pid)[0])
        return agent.rank if event.rank < 0 and agent is not None and agent.agent else event.rank

    def _lose_disconnected_members(self, now: float) -> None:
        """Count members as lost whose agent has been disconnected for longer than the grace: it usually comes
        back at once."""
        memory = self._memory
        lost_agents = {
            agent: disconnected_at
            for agent, disconnected_at in memory.disconnected_agents.items()
            if now - disconnected_at >= RECONNECT_GRACE_S
        }
        if not lost_agents:
            return
        for agent in lost_agents:
            del memory.disconnected_agents[agent]
        for record in memory.records.values():
            lost_at = lost_agents.get(split_process_key(record.pid)[0])
            if lost_at is not None and record.exit is None:
                self._process_exited(ProcessExited(pid=record.pid, exited_at=lost_at), is_lost=True)

    def _new_record(
        self, pid: int, worker: int, started_at: float, rank: int, host: str = ""
    ) -> ProcessRecord:
        settings = self._memory.settings
        self._note_progress(started_at)
        task = settings.tasks[worker] if settings.tasks and worker >= 0 else None
        record = ProcessRecord(pid, worker, host or settings.host, started_at, rank, task)
        record.interrupted = self._memory.interruptions.interrupted_at(split_process_key(pid)[0])
        return record

    def _note_progress(self, progress_at: float) -> None:
        self._memory.progress_at = max(self._memory.progress_at, progress_at)
        self._memory.stall_detector.note_progress()

    def _process_exited(self, event: ProcessExited, is_lost: bool = False) -> None:
        memory = self._memory
        record = memory.records.get(event.pid)
        if record is None or record.exit is not None:
            return
        memory.replacements.mark_ended(event.pid)
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
