"""Everything that is remembered of one job. Only `JobState` writes it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from allaboard.coordinator.finding_store import FindingStore
from allaboard.coordinator.gate import Gate
from allaboard.coordinator.interruptions import Interruptions
from allaboard.coordinator.member_table import MemberTable
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.coordinator.process_replacement import ProcessReplacements
from allaboard.coordinator.settings import JobSettings
from allaboard.coordinator.stall_detector import StallDetector, stall_after
from allaboard.coordinator.task_restarts import TaskRestarts
from allaboard.coordinator.trackers.evaluation_throttle import EvaluationThrottle
from allaboard.coordinator.trackers.resource_trends import ResourceTrends
from allaboard.coordinator.trackers.training_rollbacks import TrainingRollbacks
from allaboard.facts import JobView, LockWait
from allaboard.protocol.commands import EndJob
from allaboard.rules.engine.catalogue import RuleEntry


class JobMemory:
    """The parts of the state of one job. Times are CLOCK_MONOTONIC seconds."""

    def __init__(
        self,
        settings: JobSettings,
        launched_at: float,
        entries: tuple[RuleEntry, ...],
        utc: Callable[[float], str],
    ) -> None:
        self.settings = settings
        self.launched_at = launched_at
        self.entries = entries
        self.findings = FindingStore(utc)
        self.stall_detector = StallDetector()
        self.resource_trends = ResourceTrends()
        self.members = MemberTable(settings.wrapped)
        self.records, self.local_workers = self.members.records, self.members.workers
        self.replacements = ProcessReplacements(self.records, self.local_workers)
        self.progress_at = launched_at
        """Time of the last event that counts as progress."""
        self.lock_waits: dict[int, tuple[LockWait, ...]] = {}
        """Agent to the waits for file locks on its host."""
        self.interrupted_by = 0
        """Signal by which our own agent was asked to end the job; 0 if it was not."""
        self.interruptions = Interruptions()
        self.ending: EndJob | None = None
        self.ending_since: float | None = None
        self.other_hosts = MultiHostState(settings.host, settings.joined)
        self.leader_decides = False
        """True if the coordinator of another host decides for this one."""
        self.task_restarts = TaskRestarts(
            settings.restarts, settings.policy.stopped_after, settings.restarts_used
        )
        self.rollbacks = TrainingRollbacks()
        self.disconnected_agents: dict[int, float] = {}
        """Agent whose stream is broken just now, to the time at which it broke."""
        self.gate = Gate(launched_at, settings.policy, self.other_hosts, self.disconnected_agents)
        self.throttle = EvaluationThrottle()
        self.last_view: JobView | None = None
        """The picture of the last evaluation."""

    def view(self, now: float) -> JobView:
        """Return the frozen picture of the job that rules and faces read."""
        members = self.members.all_members()
        median_step = self.members.median_step
        return JobView(
            now=now,
            launched=0 if self.settings.wrapped else self.settings.launched,
            members=members,
            launched_at=self.launched_at,
            timeout=self.settings.timeout,
            timeout_hard=self.settings.timeout_hard,
            rolled_at=self.gate.opened_at,
            progress_at=self.progress_at,
            median_step=median_step,
            stall_after=stall_after(self.records.values(), median_step),
            lock_waits=tuple(chain.from_iterable(self.lock_waits.values())),
            uses=self.resource_trends.uses,
            setbacks=tuple(self.rollbacks.rollbacks),
            comes_back=self.task_restarts.restore_source,
            ending=self.ending is not None,
            ending_since=self.ending_since,
            ended=bool(members) and not any(m.alive for m in members),
            interruptions=self.interruptions.since_opening(self.gate.opened_at),
            **self.other_hosts.view_fields(),
        )
