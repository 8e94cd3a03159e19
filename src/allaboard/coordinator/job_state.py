"""The state of one job: ``handle(now, *events) -> commands``. It knows no socket, no file and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from allaboard.coordinator.event_recorder import EventRecorder
from allaboard.coordinator.fault_isolation import (
    describe_fault,
    find_faulty_agent,
    sender_of,
    without_agents,
)
from allaboard.coordinator.job_evaluation import JobEvaluation
from allaboard.coordinator.job_memory import JobMemory
from allaboard.coordinator.job_status import JobStatus
from allaboard.coordinator.settings import JobSettings
from allaboard.coordinator.trackers.evaluation_throttle import JOINING_INTERVAL_S
from allaboard.protocol.commands import Command, DropAgent
from allaboard.protocol.events import AgentDisconnected, Event
from allaboard.protocol.process_keys import split_process_key
from allaboard.rules.engine.catalogue import RuleEntry


def _fails(judgement: Callable[[], object]) -> bool:
    """Return True if this raises."""
    try:
        judgement()
    except Exception:
        return True
    return False


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
        self._recorder = EventRecorder(self._memory)
        self._evaluation = JobEvaluation(self._memory)

    @property
    def status(self) -> JobStatus:
        """The read-only view of the job."""
        return self._status

    def handle(self, now: float, *events: Event) -> list[Command]:
        """Take in what happened until ``now`` and return what to do.

        While the leader decides nothing is returned: the leader's coordinator sees the same events.
        """
        memory = self._memory
        self._recorder.begin_events()
        drops = list(self._apply_all(now, events))
        self._note_time_of_end(now)
        self._recorder.lose_disconnected_members(now)
        # Also while the leader decides: this state must be up to date the moment the leader is lost.
        if memory.leader_decides:
            memory.replacements.mark_judged(now)  # by the leader's rules
        memory.replacements.drop_judged(now)
        interruptions = memory.interruptions.take_reports() if memory.other_hosts.joined else []
        if memory.leader_decides:
            return []
        if not self._is_evaluation_due(now, bool(events)):
            # The other hosts must hear of an interruption before their members fall because of it.
            return [*drops, *interruptions]
        try:
            commands = self._evaluation.evaluate(now, interruptions)
        except Exception as error:
            drop = self._drop_faulty_agent(now, error)
            if drop is None:
                raise
            return [*drops, *interruptions, drop]
        self._note_time_of_end(now)
        memory.throttle.mark_evaluated(self._stage(now))
        return drops + commands

    def _apply_all(self, now: float, events: tuple[Event, ...]) -> Iterator[DropAgent]:
        """Take in all events. One of another host that cannot be taken in costs that host alone; one of
        this host is raised again once the others are taken in."""
        own_fault: Exception | None = None
        dropped: set[int] = set()
        for event in events:
            sender = sender_of(event)
            if sender in dropped and not isinstance(event, AgentDisconnected):
                continue
            try:
                self._recorder.add_event(now, event)
            except Exception as error:
                if not sender:
                    own_fault = own_fault or error
                    continue
                dropped.add(sender)
                yield self._drop_agent(
                    sender, f"its {type(event).__name__} cannot be used ({describe_fault(error)})"
                )
        if own_fault is not None:
            raise own_fault

    def _drop_agent(self, agent: int, reason: str) -> DropAgent:
        """Forget all that an agent reported."""
        memory = self._memory
        for pid in [p for p in memory.records if split_process_key(p)[0] == agent]:
            memory.replacements.drop_process(pid)
        memory.lock_waits.pop(agent, None)
        memory.other_hosts.apply_event(AgentDisconnected(agent=agent, disconnected_at=0.0))
        memory.disconnected_agents.pop(agent, None)
        return DropAgent(agent=agent, reason=reason)

    def _drop_faulty_agent(self, now: float, error: Exception) -> DropAgent | None:
        """Forget the agent whose reports make the evaluation fail; None if it is none of the others."""
        memory = self._memory
        reason = f"what it reports cannot be judged ({describe_fault(error)})"
        for pid, record in memory.records.items():
            agent = split_process_key(pid)[0]
            if agent and _fails(partial(record.to_member, False)):
                return self._drop_agent(agent, reason)
        agents = sorted({split_process_key(p)[0] for p in memory.records} - {0})
        try:
            view = memory.view(now)
        except Exception:
            return None
        agent = find_faulty_agent(
            agents,
            lambda kept: _fails(
                lambda: self._evaluation.judge_only(without_agents(view, agents, kept))
            ),
        )
        return self._drop_agent(agent, reason) if agent else None

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
            declared is not None and self._recorder.answered_members >= declared.world_size,
            now >= self._recorder.last_arrival_at + memory.settings.timeout,
            memory.other_hosts.link_rounds.asked_at is None,
            bool(memory.other_hosts.link_rounds.probing_agents),
            memory.ending is None,
        )
