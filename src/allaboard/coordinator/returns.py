"""The tasks of this round that come back alone: what is remembered of their ends, and what is due."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.coordinator.events import End, Put, Replace
from allaboard.evidence.failures import failed
from allaboard.evidence.servers import AROUND, name, trainers
from allaboard.facts import Cause, JobView, Member, Outcome, Phase, Setback, TaskReturn
from allaboard.recover.ended import cause_of
from allaboard.recover.policy import Again, Restarts
from allaboard.recover.tasks import TaskEnd, after_task, comes_back_alone


class Returns:
    """``used`` restarts were made in the rounds before; a task that is stopped is replaced after
    ``stopped_after`` s."""

    def __init__(self, policy: Restarts, stopped_after: float, used: int) -> None:
        self._policy = policy
        self._stopped_after = stopped_after
        self._before = used
        self._ends: dict[int, list[TaskEnd]] = {}
        self._seen: set[int] = set()
        self._evicted: dict[int, str] = {}
        self._out: dict[int, float] = {}
        self.made: list[TaskReturn] = []

    def evicted(self, pid: int) -> str:
        """Why it was ended, to be replaced ("was stopped for 30 s"); "" where it was not."""
        return self._evicted.get(pid, "")

    def due(self, view: JobView, done: int) -> Iterator[Replace | Put | End]:
        """What is to be done now; ``done`` steps were made by processes that are gone and replaced."""
        if not self._policy.allowed or view.ending:
            return
        for member in view.members:
            if member.called in self._seen or not comes_back_alone(view, member):
                continue
            if member.exit is not None and (failed(member) or self.evicted(member.called)):
                self._seen.add(member.called)
                if any(m.alive or m.exit is None or m.exit.code != 0 for m in trainers(view)):
                    yield self._ended(view, member, done)
            elif self._stopped(view, member):
                since = view.now - member.os_state_since
                self._evicted[member.called] = f"was stopped for {since:.0f} s"
                yield Put(pid=member.called, text=f"{name(member)} {self._evicted[member.called]}")
        self._back(view)

    def _stopped(self, view: JobView, member: Member) -> bool:
        since = view.now - member.os_state_since
        stopped = member.alive and member.os_state == "T" and since >= self._stopped_after
        return stopped and not self.evicted(member.called)

    def _ended(self, view: JobView, member: Member, done: int) -> Replace | End:
        why = cause_of(member)
        if self.evicted(member.called):
            why = Cause(who=name(member), what=self._evicted[member.called], steps=member.step)
        steps = done + sum(m.step for m in trainers(view))
        ends = self._ends.setdefault(member.worker, [])
        ends.append(TaskEnd(cause=why, done=steps))
        answer = after_task(ends, self._before + len(self.made), self._policy)
        if not isinstance(answer, Again):
            return End(outcome=Outcome.FAILED, reason=answer.reason, final=True)
        assert member.exit is not None
        self._out[member.worker] = member.exit.at
        self.made.append(TaskReturn(task=member.task, cause=str(why), decision=answer.reason))
        return Replace(worker=member.worker, reason=answer.reason, delay=answer.delay)

    def lost(self, back: Setback) -> None:
        """The training went back: the steps are lost with the last of those who ended before."""
        tasks = {f"{w.job}-{w.index}" for w in back.who}
        for at in range(len(self.made) - 1, -1, -1):
            if self.made[at].task in tasks:
                self.made[at] = msgspec.structs.replace(self.made[at], lost=back.lost)
                return

    def _back(self, view: JobView) -> None:
        """Who is there again: it has told its framework who it is; an evaluator, which tells nobody, has
        imported it."""
        for member in view.members:
            out = self._out.get(member.worker)
            there = Phase.IMPORTED if member.who.job in AROUND else Phase.JOINED
            if out is None or not member.alive or member.phase < there:
                continue
            del self._out[member.worker]
            for at in range(len(self.made) - 1, -1, -1):
                if self.made[at].task == member.task:
                    seconds = round(member.phase_since - out, 3)
                    self.made[at] = msgspec.structs.replace(self.made[at], seconds=seconds)
                    break
