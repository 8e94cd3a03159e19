"""Everything that is remembered of one job. Only `JobState` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import msgspec

from allaboard.analysis.collectives.queued_calls import with_queued_calls
from allaboard.coordinator.finding_store import FindingStore
from allaboard.coordinator.gate import Gate
from allaboard.coordinator.interruptions import Interruptions
from allaboard.coordinator.member_table import MemberTable
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.coordinator.process_replacement import ProcessReplacements
from allaboard.coordinator.settings import JobSettings
from allaboard.coordinator.stall_detector import StallDetector, stall_after
from allaboard.coordinator.straggler_looks import StragglerLooks
from allaboard.coordinator.task_restarts import TaskRestarts
from allaboard.coordinator.trackers.evaluation_throttle import EvaluationThrottle
from allaboard.coordinator.trackers.resource_trends import ResourceTrends
from allaboard.coordinator.trackers.step_distribution import StepDistribution
from allaboard.coordinator.trackers.step_lags import StepLags
from allaboard.coordinator.trackers.training_rollbacks import TrainingRollbacks
from allaboard.coordinator.world_waits import find_world_waits
from allaboard.facts import Gpu, JobView, LockWait
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
        self.gpus: dict[str, tuple[Gpu, ...]] = {}
        """The GPUs by host, as of the last sample."""
        self.members = MemberTable(settings.wrapped)
        self.records, self.local_workers = self.members.records, self.members.workers
        self.replacements = ProcessReplacements(self.records, self.local_workers)
        self.progress_at = launched_at
        """Time of the last event that counts as progress."""
        self.lock_waits: dict[int, tuple[LockWait, ...]] = {}
        """Agent to the waits for file locks on its host."""
        self.interrupted_by = 0
        """Signal by which our own agent was asked to end the job; 0 if it was not."""
        self.interrupted_at: float | None = None
        """When (s); None if it was not."""
        self.warned_by = 0
        """The first of SIGUSR1 and SIGUSR2 that our own agent got; 0 if it got none."""
        self.warned_at: float | None = None
        """When (s); None if it got none."""
        self.interruptions = Interruptions()
        self.ending: EndJob | None = None
        self.ending_since: float | None = None
        self.policy = settings.policy
        """When the user allowed the job to be ended."""
        self.other_hosts = MultiHostState(settings.host, settings.joined)
        self.leader_decides = False
        """True if the coordinator of another host decides for this one."""
        self.task_restarts = TaskRestarts(
            settings.restarts, settings.policy.stopped_after, settings.restarts_used
        )
        self.rollbacks = TrainingRollbacks()
        self.step_distribution = StepDistribution()
        self.step_lags = StepLags()
        self.straggler_looks = StragglerLooks()
        self.disconnected_agents: dict[int, float] = {}
        """Agent whose stream is broken just now, to the time at which it broke."""
        self.gate = Gate(launched_at, settings.policy, self.other_hosts, self.disconnected_agents)
        self.throttle = EvaluationThrottle()
        self.last_view: JobView | None = None
        """The picture of the last evaluation."""

    def expect_other_agents(self) -> None:
        """Note that other agents may have started the ranks that are missing here."""
        assert self.settings.policy_among_agents is not None
        self.other_hosts.joined = True
        self.policy = self.settings.policy_among_agents
        self.gate.adopt_policy(self.policy)

    def set_gpus(self, host: str, gpus: Iterable[Gpu]) -> None:
        """Note the GPUs of a host as they were read now."""
        self.gpus[host] = tuple(msgspec.structs.replace(gpu, host=host) for gpu in gpus)

    def view(self, now: float) -> JobView:
        """Return the frozen picture of the job that rules and faces read."""
        members = with_queued_calls(self.members.all_members())
        members = self.step_lags.with_lags(now, members)
        median_step = self.members.median_step
        return JobView(
            now=now,
            launched=0 if self.settings.wrapped else self.settings.launched,
            members=members,
            launched_at=self.launched_at,
            outside_step=self.settings.outside_step,
            step_command=self.settings.step_command,
            timeout=self.settings.timeout,
            timeout_hard=self.settings.timeout_hard,
            time_limit_at=self.settings.time_limit_at,
            interrupted_at=self.interrupted_at,
            warned_at=self.warned_at,
            warned_by=self.warned_by,
            rolled_at=self.gate.opened_at,
            progress_at=self.progress_at,
            median_step=median_step,
            stall_after=stall_after(self.records.values(), median_step),
            hang_limit=self.settings.policy.hang_limit,
            world_waits=find_world_waits(members),
            lock_waits=tuple(chain.from_iterable(self.lock_waits.values())),
            step_spread=self.step_distribution.spread,
            uses=self.resource_trends.uses,
            gpus=tuple(chain.from_iterable(self.gpus.values())),
            setbacks=tuple(self.rollbacks.rollbacks),
            comes_back=self.task_restarts.restore_source,
            ending=self.ending is not None,
            ending_since=self.ending_since,
            ended=bool(members) and not any(m.alive and not m.candidate for m in members),
            interruptions=self.interruptions.since_opening(self.gate.opened_at),
            **self.other_hosts.view_fields(),
        )
