"""One evaluation of a job: the rules and the policy judge its picture, and commands come out."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_order import members_to_trace
from allaboard.analysis.collectives.swapped_collectives import members_to_trace_for_swaps
from allaboard.analysis.roll_call.other_agents import lacks_unseen_ranks
from allaboard.analysis.roll_call.overdue import find_overdue_member
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.roll_call.waiting_message import waiting_message
from allaboard.coordinator.gate import describe_complete_roll
from allaboard.coordinator.group_disambiguation import group_name_in_process
from allaboard.coordinator.job_memory import JobMemory
from allaboard.coordinator.pause_announcements import PauseAnnouncements
from allaboard.facts import Claim, JobView, Stage
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
from allaboard.rules.engine.catalogue import RuleEntry
from allaboard.rules.engine.evaluate import run_rules
from allaboard.rules.engine.relations import without_explained_last_resort

StagedClaims = list[tuple[Stage, Claim]]


class JobEvaluation:
    """Judges the picture of a job and decides what to do."""

    def __init__(self, memory: JobMemory) -> None:
        self._memory = memory
        self._pauses = PauseAnnouncements()

    def judge_only(self, view: JobView) -> None:
        """Judge a picture of the job as `evaluate` does, and decide nothing."""
        memory = self._memory
        rolls = find_roll_calls(view)
        self._needs_other_agents(view.now, rolls)
        claims = without_explained_last_resort(list(run_rules(view, memory.entries)))
        find_overdue_member(view, rolls)
        waiting_message(view)
        for roll in rolls:
            describe_complete_roll(roll, 0.0)
        staged = [(entry.stage, claim) for entry, claim in claims]
        end_verdict(view, rolls, staged, memory.policy)

    def evaluate(self, now: float, interruptions: list[ReportInterruption]) -> list[Command]:
        """Run the rules and the policy on the picture of the job, and return what to do."""
        memory = self._memory
        view = memory.last_view = memory.view(now)
        rolls = find_roll_calls(view)
        if self._needs_other_agents(now, rolls):
            memory.expect_other_agents()
            view = memory.last_view = memory.view(now)
            rolls = find_roll_calls(view)
        claims = without_explained_last_resort(list(run_rules(view, memory.entries)))
        memory.replacements.mark_judged(now)
        staged = [(entry.stage, claim) for entry, claim in claims]
        commands: list[Command] = [*interruptions]
        if not memory.interrupted_by:
            commands += self._announcements(now, view, claims)
        else:
            reasons = [
                (e, c)
                for e, c in claims
                if e.rule.relations.explains_signal
                and not (e.rule.relations.last_resort and memory.findings.is_stall_known(c.who))
            ]
            new_findings = memory.findings.new_findings(now, reasons)
            commands += [AnnounceFinding(finding=finding) for finding in new_findings]
        # On several hosts an interrupted agent opens no gate: the others would lose its members at once.
        if memory.ending is None and not (memory.interrupted_by and memory.other_hosts.joined):
            startup_claims = [claim for stage, claim in staged if stage in START_STAGES]
            is_overdue = find_overdue_member(view, rolls) is not None
            commands += memory.gate.open_when_complete(now, rolls, startup_claims, is_overdue)
            commands += memory.gate.waiting_notes(view, rolls)
        # Stacks are sampled while a job ends, too: they show why a member does not exit.
        commands += self._samples(view)
        may_decide = not (memory.interrupted_by or memory.other_hosts.must_only_observe(now))
        if memory.ending is None and may_decide:
            commands += self._restarts(view)
        if memory.ending is None and may_decide:
            commands += self._verdict(view, rolls, staged)
        return commands

    def _needs_other_agents(self, now: float, rolls: tuple[RollCall, ...]) -> bool:
        """Return True if no process of this agent can be one of the ranks that are missing."""
        memory = self._memory
        if memory.other_hosts.joined or memory.settings.policy_among_agents is None:
            return False
        return any(lacks_unseen_ranks(roll, memory.local_workers, now) for roll in rolls)

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
        if not self._memory.policy.only_observes:
            if pids:
                yield SampleStacks(pids=pids)
            elif looks := self._memory.straggler_looks.pids_to_look_at(view):
                yield SampleStacks(pids=looks, is_look=True)
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
        decision = end_verdict(view, rolls, staged, memory.policy)
        if decision is not None:
            memory.ending = EndJob(outcome=decision.outcome, reason=decision.reason)
            yield memory.ending
