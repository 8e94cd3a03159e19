"""The state of one job: ``handle(now, *events) -> commands``. Pure but for what it remembers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from allaboard.analysis.collectives.collective_order import wanted
from allaboard.analysis.collectives.swapped_collectives import wanted_paths
from allaboard.analysis.failures.failure_causality import failures
from allaboard.analysis.member_names import names
from allaboard.analysis.parameter_servers.parameter_servers import SERVER_JOBS, chief_of, how_ended
from allaboard.analysis.roll_call.roll_call import roll_calls
from allaboard.coordinator.finding_store import FindingStore
from allaboard.coordinator.gate import Gate
from allaboard.coordinator.group_disambiguation import group_name_in_process
from allaboard.coordinator.interruptions import Interruptions
from allaboard.coordinator.job_outcome import count_exits, early_leaver, interruption_behind
from allaboard.coordinator.member_table import MemberTable
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.coordinator.pause_announcements import PauseAnnouncements
from allaboard.coordinator.process_record import ProcessRecord, has_begun_work
from allaboard.coordinator.process_replacement import ProcessReplacements
from allaboard.coordinator.settings import JobSettings
from allaboard.coordinator.stall_detector import StallDetector, stall_after
from allaboard.coordinator.task_restarts import TaskRestarts
from allaboard.coordinator.trackers.evaluation_throttle import (
    JOINING_INTERVAL_S,
    THROTTLED_FROM_MEMBERS,
    EvaluationThrottle,
)
from allaboard.coordinator.trackers.interning import InternPool
from allaboard.coordinator.trackers.resource_trends import ResourceTrends
from allaboard.coordinator.trackers.training_rollbacks import TrainingRollbacks
from allaboard.facts import Exit, Interruption, JobView, LockWait, Outcome, Phase
from allaboard.policy.end.end_policy import BEFORE
from allaboard.policy.end.verdict import verdict
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    EndJob,
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
    Event,
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
from allaboard.rules.engine.catalogue import Entry
from allaboard.rules.engine.evaluate import diagnose
from allaboard.rules.engine.relations import declared_relations

RECONNECT_GRACE_S = 3.0
"""Seconds in which an agent whose stream broke comes again."""


class JobState:
    """Everything that is remembered of one job."""

    def __init__(
        self,
        settings: JobSettings,
        at: float,
        entries: tuple[Entry, ...],
        utc: Callable[[float], str],
    ) -> None:
        self.settings = settings
        self.at = at
        self.entries = entries
        self.ledger = FindingStore(utc)
        self.lookout = StallDetector()
        self.gauges = ResourceTrends()
        self.members = MemberTable(settings.wrapped)
        self.records, self.workers = self.members.records, self.members.workers
        self.succession = ProcessReplacements(self.records, self.workers)
        self.progress_at = at
        self.lock_waits: dict[int, tuple[LockWait, ...]] = {}
        self.interrupted = 0
        self.interruptions = Interruptions()
        self.ending: EndJob | None = None
        self._ending_since: float | None = None
        self.crossing = MultiHostState(settings.host, settings.joined)
        self.quiet = False
        self.returns = TaskRestarts(
            settings.restarts, settings.policy.stopped_after, settings.restarted
        )
        self.setbacks = TrainingRollbacks()
        self.away: dict[int, float] = {}
        self.gate = Gate(at, settings.policy, self.crossing, self.away)
        self.answers = 0
        self.arrived_at = at
        self.shared = InternPool()
        self.turns = EvaluationThrottle()
        self.waits = PauseAnnouncements()
        self._last: JobView | None = None
        self._starts: bool | None = None

    def handle(self, now: float, *events: Event) -> list[Command]:
        """Takes in what happened until ``now``; says what to do. Nothing while it is ``quiet``:
        another host's coordinator sees what is seen here, and decides."""
        self._starts = None
        for event in events:
            self._take(now, event)
        self._since(now)
        self._miss(now)
        self.succession.forget(now)
        halted = self.interruptions.due() if self.settings.joined else []
        if self.quiet:
            return []
        if not self._due(now, bool(events)):
            return [*halted]  # many are told before their peers fall
        view = self._last = self.view(now)
        rolls = roll_calls(view)
        claims = list(diagnose(view, self.entries))
        self.succession.judged(now)
        staged = [(entry.rule.stage, claim) for entry, claim in claims]
        commands: list[Command] = [*halted]
        if not self.interrupted:
            commands += [AnnounceFinding(finding=f) for f in self.ledger.new(now, claims)]
            commands += [AnnounceFinding(finding=f) for f in self.ledger.over(now, view)]
            commands += [ShowNote(text=line) for line in (self.waits.due(view),) if line]
        if self.ending is None and not (self.interrupted and self.settings.joined):
            commands += self.gate.open_when_complete(
                now, rolls, [c for s, c in staged if s in BEFORE]
            )
            commands += self.gate.awaited(view, rolls)
        pids = self.lookout.due(view)
        if pids and not self.settings.policy.observe:
            commands.append(SampleStacks(pids=pids))
        commands += [
            TraceCalls(pids=pids, group=group_name_in_process(group), round=round_)
            for (group, round_), pids in wanted(view) + wanted_paths(view)
        ]
        if self.ending is None and not self.interrupted:
            for due in self.returns.due(view, self.succession.steps):
                commands.append(due)
                self.ending = self.ending or (due if isinstance(due, EndJob) else None)
        if self.ending is None and not self.interrupted:
            found = verdict(view, rolls, staged, self.settings.policy)
            if found is not None:
                self.ending = EndJob(outcome=found.outcome, reason=found.reason)
                commands.append(self.ending)
        self._since(now)
        self.turns.looked(self._stage(now))
        return commands

    def _since(self, now: float) -> None:
        """Keeps in mind when the end was decided, here or by another host."""
        if self.ending is not None and self._ending_since is None:
            self._ending_since = now

    def _due(self, now: float, news: bool) -> bool:
        """Whether to look now: where the last has come, or has had its time, at once."""
        stage = self._stage(now)
        few = not news or self.interrupted
        least = 0.0 if stage[0] else JOINING_INTERVAL_S
        return self.turns.due(now, 0 if few else len(self.records), stage, least)

    def _stage(self, now: float) -> tuple[bool, ...]:
        """What a look must not wait for; the first: whether all have come and said what they run with."""
        told = next(
            (r.box.declared for r in self.records.values() if r.box and r.box.declared), None
        )
        return (
            told is not None and self.answers >= told.world_size,
            now >= self.arrived_at + self.settings.timeout,
            self.crossing.asked_at is None,
            bool(self.crossing.awaited),
            self.ending is None,
        )

    def _take(self, now: float, event: Event) -> None:
        match event:  # what thousands of hosts tell first
            case ProcessSampled():
                self._seen(event)
            case MemberFactsReported():
                if event.pid in self.records:
                    self.answers += not self.records[event.pid].facts
                    self.records[event.pid].answer(*self.shared.facts(event.facts))
            case AgentConnected() | LinksProbed():
                self._met(event)
            case WorkerLaunched():
                self._launched(event)
            case ProcessExited():
                self._exited(event)
            case StackSampled():
                if event.pid in self.records:
                    self.records[event.pid].look(event)
            case TrafficSampled():
                if event.pid in self.records:
                    self.records[event.pid].exchange(event)
            case CallsTraced():
                if event.pid in self.records:
                    self.records[event.pid].trace(event.traced)
            case ResourcesMeasured():
                self._measured(event)
            case LockWaitsSampled():
                self.lock_waits[event.agent] = event.waits
            case AgentInterrupted():
                self._interrupted(now, event)
            case SnapshotTaken():
                self.returns.kept(event)
            case AgentOverslept():
                self.progress_at = now
                self.ledger.restart(now)
                self.gauges.clear()
                for record in self.records.values():
                    record.restart_windows(now)
            case _:
                self._met(event)

    def _launched(self, event: WorkerLaunched) -> None:
        after = self.succession.begins(event.worker)
        many = self.settings.launched > 1
        rank = event.worker if many else self.settings.rank
        self.records[event.pid] = self._record(event.pid, event.worker, event.at, rank)
        self.records[event.pid].after = after
        self.setbacks.began(event.pid)
        if not split_process_key(event.pid)[0]:
            self.workers.add(event.pid)

    def _seen(self, event: ProcessSampled) -> None:
        record = self.records.get(event.pid)
        if record is None:
            after = self._returned(event)
            rank = self._rank(event)
            record = self._record(event.pid, event.worker, event.at, rank, event.host)
            record.after = after
            self.records[event.pid] = record
        box = self.shared.box(event.box, record.box)
        silent = record.box is None or record.box.declared is None
        if record.see(event, box):
            self._progress(event.at)
            if box is not None and box.phase == Phase.ARRIVED:
                self.arrived_at = max(self.arrived_at, box.phase_since)
        if silent and record.box is not None and record.box.declared is not None:
            self.succession.declares(record)
        self._numbered(event)

    def _met(self, event: Event) -> None:
        """It is of the meeting with other hosts."""
        self.crossing.take(event)
        if isinstance(event, RoleTaken) and not event.leads:
            self._hand_over()
        if isinstance(event, AgentDisconnected):
            self.away[event.agent] = event.at
        elif isinstance(event, AgentConnected):
            self.away.pop(event.agent, None)

    def _interrupted(self, now: float, event: AgentInterrupted) -> None:
        if not event.agent:
            self.interrupted = self.interrupted or event.signal
        there = [r for p, r in self.records.items() if split_process_key(p)[0] == event.agent]
        launchers = self.members.launchers()
        for record in there if event.agent else ():
            record.interrupt(event.at)
        host = event.host or self.settings.host
        self.interruptions.take(now, event, (r.member(r.pid in launchers) for r in there), host)

    def _may_set_back(self, record: ProcessRecord) -> None:
        """The variables lie in servers, and the chief restores all of them when it comes back."""
        assert record.exit is not None
        who = record.member(False).who
        first = chief_of(r.member(False) for r in self.records.values())
        if who.job in SERVER_JOBS or (who.job, who.index) == first:
            how = self.returns.evicted(record.pid) or how_ended(record.exit)
            self.setbacks.ended(who, how, record.exit.at)

    def _numbered(self, seen: ProcessSampled) -> None:
        box = seen.box
        if box is None or box.numbered is None:
            return
        found = self.setbacks.take(seen.at, seen.pid, box.numbered, box.phase_since)
        if found is not None:
            self.returns.lost(found)

    def _hand_over(self) -> None:
        """Another host leads from now on: of those on other hosts we hear nothing any more."""
        for pid in [p for p in self.records if split_process_key(p)[0]]:
            self.succession.drop(pid)
        self.away.clear()

    def _measured(self, event: ResourcesMeasured) -> None:
        """A start has a pace of its own: what is used is followed once all train, or serve who do."""
        if self._starts is None:  # asked once for all hosts that are heard now
            boxes = [r.box for r in self.records.values() if r.box is not None and r.exit is None]
            self._starts = any(not has_begun_work(b) for b in boxes if b.declared is not None)
        if self._starts:
            self.gauges.clear()
        else:
            self.gauges.take(event.at, event.host or self.settings.host, event.readings)

    def _returned(self, seen: ProcessSampled) -> float | None:
        """Of another host's worker it is not told that it was started again, only that it is there."""
        if not split_process_key(seen.pid)[0] or seen.worker not in self.returns.asked:
            return None
        self.returns.asked.discard(seen.worker)
        return self.succession.follows(seen.worker)

    def _rank(self, seen: ProcessSampled) -> int:
        """What its environment says, or what its agent was started as."""
        agent = self.crossing.agents.get(split_process_key(seen.pid)[0])
        return agent.rank if seen.rank < 0 and agent is not None and agent.agent else seen.rank

    def _miss(self, now: float) -> None:
        """An agent whose stream broke usually comes again at once; after a while what became of its
        members is not seen any more."""
        gone = {agent: at for agent, at in self.away.items() if now - at >= RECONNECT_GRACE_S}
        if not gone:
            return
        for agent in gone:
            del self.away[agent]
        for record in self.records.values():
            at = gone.get(split_process_key(record.pid)[0])
            if at is not None and record.exit is None:
                self._exited(ProcessExited(pid=record.pid, at=at), lost=True)

    def _record(self, pid: int, worker: int, at: float, rank: int, host: str = "") -> ProcessRecord:
        self._progress(at)
        task = self.settings.tasks[worker] if self.settings.tasks and worker >= 0 else None
        record = ProcessRecord(pid, worker, host or self.settings.host, at, rank, task)
        record.interrupted = self.interruptions.asked_at(split_process_key(pid)[0])
        return record

    def _progress(self, at: float) -> None:
        self.progress_at = max(self.progress_at, at)
        self.lookout.moved()

    def _exited(self, event: ProcessExited, lost: bool = False) -> None:
        record = self.records.get(event.pid)
        if record is None or record.exit is not None:
            return
        self.succession.ended(event.pid)
        how = Exit(
            at=event.at,
            code=event.code,
            signal=event.signal,
            oom=event.oom,
            ours=self.ending is not None
            or bool(self.interrupted)
            or record.interrupted is not None
            or bool(self.returns.evicted(event.pid)),
            last_line=event.last_line,
            lost=lost,
        )
        record.end(how, lost)
        if event.signal is not None or event.code is not None:
            self._may_set_back(record)
        self.gauges.forget(record.host, split_process_key(record.pid)[1])
        self._progress(event.at)

    def view(self, now: float) -> JobView:
        """The frozen picture of the job that rules and faces read."""
        members = self.members.told()
        step = self.members.median_step
        return JobView(
            now=now,
            launched=0 if self.settings.wrapped else self.settings.launched,
            members=members,
            launched_at=self.at,
            timeout=self.settings.timeout,
            timeout_hard=self.settings.timeout_hard,
            rolled_at=self.rolled_at,
            progress_at=self.progress_at,
            median_step=step,
            stall_after=stall_after(self.records.values(), step),
            lock_waits=tuple(chain.from_iterable(self.lock_waits.values())),
            uses=self.gauges.uses,
            setbacks=tuple(self.setbacks.known),
            comes_back=self.returns.source,
            ending=self.ending is not None,
            ending_since=self._ending_since,
            ended=bool(members) and not any(m.alive for m in members),
            interruptions=self.interruptions.since(self.rolled_at),
            **self.crossing.facts(),
        )

    def recent(self, now: float) -> JobView:
        """A picture for who only wants to show something: of many members the one of the last look."""
        few = len(self.records) < THROTTLED_FROM_MEMBERS
        return self.view(now) if few or self._last is None else self._last

    @property
    def rolled_at(self) -> float | None:
        """When the first member was let through its door."""
        return self.gate.rolled_at

    def exit_of(self, worker: int) -> Exit | None:
        """How this worker ended, if it has; None too where allaboard ended it."""
        return self.members.exit_of(worker)

    @property
    def _restarts(self) -> bool:
        """Whether this host starts workers of all hosts again."""
        return self.crossing.leads and self.settings.restarts.allowed

    def fell_with(self) -> Interruption | None:
        """The interruption of another host because of which this job fell; None where somebody failed by
        itself, or nobody did."""
        ended = self.ending.outcome if self.ending is not None else None
        return interruption_behind(
            self.view(self.progress_at), ended, count_exits(self.members.ended(self._restarts)).bad
        )

    def outcome(self) -> tuple[Outcome, str]:
        """How the job ended, once no process of it is left."""
        if self.interrupted:
            return Outcome.INTERRUPTED, "interrupted"
        elsewhere = self.fell_with()
        if elsewhere is not None:
            return Outcome.INTERRUPTED, str(elsewhere)
        if self.ending is not None:
            return self.ending.outcome, self.ending.reason
        found = count_exits(self.members.ended(self._restarts))
        if found.bad:
            return Outcome.FAILED, f"{found.bad} of {found.all} workers failed"
        findings = self.ledger.findings if self.settings.joined else ()
        early = early_leaver(
            findings, declared_relations(self.entries), self.settings.host, self.workers
        )
        if early is not None:
            return Outcome.FAILED, early.summary
        aside = failures(self.view(self.progress_at)).aside
        beside = f", beside {names(aside)}, which failed" if aside else ""
        return Outcome.COMPLETED, f"every worker ended with exit code 0{beside}"
