"""Events become memory of the job: of its processes, other hosts, and what their coordinators decided."""

from __future__ import annotations

from allaboard.coordinator.job_memory import JobMemory
from allaboard.coordinator.process_record import has_begun_work
from allaboard.coordinator.process_recorder import ProcessRecorder
from allaboard.coordinator.trackers.interning import InternPool
from allaboard.protocol.commands import EndJob
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
    SignalForwarded,
    SnapshotTaken,
    StackSampled,
    TrafficSampled,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import split_process_key

RECONNECT_GRACE_S = 3.0
"""How long a broken agent connection may take to come back before its members count as lost."""


class EventRecorder:
    """Writes events into the memory of a job. Decides nothing."""

    def __init__(self, memory: JobMemory) -> None:
        self._memory = memory
        self.answered_members = 0
        """Members that reported what they run with."""
        self._intern_pool = InternPool()
        self._processes = ProcessRecorder(memory, self._intern_pool)
        self._is_starting: bool | None = None
        """True while a member has not begun its work; None until it is asked for among these events."""

    @property
    def last_arrival_at(self) -> float:
        """When the last member arrived at the gate (s)."""
        return self._processes.last_arrival_at

    def begin_events(self) -> None:
        """Note that the events which follow came together, later than those before."""
        self._is_starting = None

    def add_event(self, now: float, event: Event) -> None:
        """Take in one event."""
        memory = self._memory
        match event:  # the most frequent events of thousands of hosts come first
            case ProcessSampled():
                self._processes.add_sample(event)
            case MemberFactsReported():
                # An event may still be under way when its process has been forgotten.
                if event.pid in memory.records:
                    self.answered_members += not memory.records[event.pid].facts
                    memory.records[event.pid].set_facts(
                        *self._intern_pool.intern_facts(event.facts)
                    )
            case AgentConnected() | LinksProbed():
                self._other_hosts_changed(now, event)
            case WorkerLaunched():
                self._processes.begin_worker(event)
            case ProcessExited():
                self._processes.end_process(event)
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
            case SignalForwarded():
                if memory.warned_at is None:
                    memory.warned_at, memory.warned_by = event.forwarded_at, event.signal
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
                self._other_hosts_changed(now, event)

    def lose_disconnected_members(self, now: float) -> None:
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
                self._processes.end_process(
                    ProcessExited(pid=record.pid, exited_at=lost_at), is_lost=True
                )

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
        memory.step_lags.restart_window()
        for record in memory.records.values():
            record.restart_windows(now)

    def _other_hosts_changed(self, now: float, event: Event) -> None:
        memory = self._memory
        memory.other_hosts.apply_event(event)
        if isinstance(event, RoleTaken) and not event.leads:
            self._drop_remote_members()
        elif isinstance(event, RoleTaken) and event.is_roll_call_over:
            memory.gate.mark_opened(now)
        if isinstance(event, AgentDisconnected):
            memory.disconnected_agents[event.agent] = event.disconnected_at
        elif isinstance(event, AgentConnected):
            memory.disconnected_agents.pop(event.agent, None)

    def _agent_interrupted(self, now: float, event: AgentInterrupted) -> None:
        memory = self._memory
        if not event.agent:
            if not memory.interrupted_by:
                memory.interrupted_at = event.interrupted_at
            memory.interrupted_by = memory.interrupted_by or event.signal
        on_host = [r for p, r in memory.records.items() if split_process_key(p)[0] == event.agent]
        launchers = memory.members.launcher_pids()
        for record in on_host if event.agent else ():
            record.mark_interrupted(event.interrupted_at)
        members = (r.to_member(r.pid in launchers) for r in on_host)
        host = event.host or memory.settings.host
        memory.interruptions.add_interruption(now, event, members, host)

    def _drop_remote_members(self) -> None:
        """Forget the members of other hosts: another host leads now, and nothing more is heard of them."""
        memory = self._memory
        for pid in [p for p in memory.records if split_process_key(p)[0]]:
            memory.replacements.drop_process(pid)
        memory.disconnected_agents.clear()

    def _resources_measured(self, event: ResourcesMeasured) -> None:
        """Follow what is used once all members train, or serve: during a start it changes in another way."""
        memory = self._memory
        host = event.host or memory.settings.host
        if event.gpus:
            memory.set_gpus(host, event.gpus)
        if self._is_starting is None:  # asked once for all hosts whose events came together
            boxes = [r.box for r in memory.records.values() if r.box is not None and r.exit is None]
            self._is_starting = any(not has_begun_work(b) for b in boxes if b.declared is not None)
        if self._is_starting:
            memory.resource_trends.restart_window()
        else:
            memory.resource_trends.add_readings(event.measured_at, host, event.readings)
