"""The state of one job: ``handle(now, *events) -> commands``. Pure but for what it remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import msgspec

from allaboard.catalogue import Entry
from allaboard.coordinator.crossing import Crossing
from allaboard.coordinator.events import (
    AgentGone,
    AgentHere,
    Announce,
    Answered,
    Command,
    Compare,
    End,
    Event,
    Exchanged,
    Exited,
    Interrupted,
    Kept,
    Launched,
    LetThrough,
    Locks,
    Look,
    Looked,
    Measured,
    Note,
    Overslept,
    RoleTaken,
    Seen,
    Trace,
    split_key,
)
from allaboard.coordinator.gauges import Gauges
from allaboard.coordinator.ledger import Ledger
from allaboard.coordinator.lookout import Lookout, stall_after
from allaboard.coordinator.record import Record, works
from allaboard.coordinator.returns import Returns
from allaboard.coordinator.setbacks import Setbacks
from allaboard.coordinator.shared import Shared
from allaboard.coordinator.turns import MANY, Turns
from allaboard.decide import BEFORE, Policy, proven, verdict
from allaboard.diagnose import diagnose
from allaboard.evidence.failures import TOGETHER
from allaboard.evidence.order import wanted
from allaboard.evidence.servers import SERVER_JOBS, chief_of, how_ended
from allaboard.evidence.swapped import wanted_paths
from allaboard.facts import Claim, Exit, JobView, LockWait, Outcome, Phase
from allaboard.recover.policy import Restarts
from allaboard.rollcall.roll import Roll, roll_calls

RETURN = 3.0
"""Seconds in which an agent whose stream broke comes again."""
TOLD = 2.0
"""Seconds from the end of a process until the rules have said what there is to say of it."""
ANSWERS = 2.0
"""Seconds after the last arrival in which every member's agent tells what it runs with."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is started with. ``wrapped``: the one worker is somebody else's launcher.
    Times in seconds; ``timeout_hard`` also bounds the wait for members that are alive. ``joined``:
    the environment says that this worker is one of a cluster, as ``rank``; ``tasks`` are job and
    index of each worker where the job has roles. ``restarts`` is what may be started again, ``restarted`` how
    often that was done before."""

    launched: int
    host: str
    policy: Policy = Policy()
    timeout: float = 60.0
    timeout_hard: float | None = None
    wrapped: bool = False
    joined: bool = False
    rank: int = -1
    tasks: tuple[tuple[str, int], ...] = ()
    restarts: Restarts = Restarts()
    restarted: int = 0


class Job:
    """Everything that is remembered of one job."""

    def __init__(
        self,
        settings: Settings,
        at: float,
        entries: tuple[Entry, ...],
        utc: Callable[[float], str],
    ) -> None:
        self.settings = settings
        self.at = at
        self.entries = entries
        self.ledger = Ledger(utc)
        self.lookout = Lookout()
        self.gauges = Gauges()
        self.records: dict[int, Record] = {}
        self.workers: set[int] = set()
        self.rolled_at: float | None = None
        self.progress_at = at
        self.lock_waits: tuple[LockWait, ...] = ()
        self.interrupted = 0
        self.ending: End | None = None
        self.crossing = Crossing(settings.host, settings.joined)
        self.quiet = False
        self.returns = Returns(settings.restarts, settings.policy.stopped_after, settings.restarted)
        self.setbacks = Setbacks()
        self.replaced: set[int] = set()
        self.judged: set[int] = set()
        self.replaced_steps = 0
        self.away: dict[int, float] = {}
        self.answers = 0
        self.arrived_at = at
        self.shared = Shared()
        self.turns = Turns()
        self._last: JobView | None = None
        self._starts: bool | None = None

    def handle(self, now: float, *events: Event) -> list[Command]:
        """Takes in what happened until ``now``; says what to do. Nothing while it is ``quiet``:
        another host's coordinator sees what is seen here, and decides."""
        self._starts = None
        for event in events:
            self._take(now, event)
        self._miss(now)
        self._forget(now)
        if self.quiet or not self._due(now, bool(events)):
            return []
        view = self._last = self.view(now)
        rolls = roll_calls(view)
        claims = list(diagnose(view, self.entries))
        self.judged |= {pid for pid in self.replaced if self._ended(pid, now)}
        staged = [(entry.rule.stage, claim) for entry, claim in claims]
        commands: list[Command] = []
        if not self.interrupted:
            commands += [Announce(finding=f) for f in self.ledger.new(now, claims)]
            commands += [Announce(finding=f) for f in self.ledger.over(now, view)]
        commands += self._gate(now, rolls, [c for s, c in staged if s in BEFORE])
        pids = self.lookout.due(view)
        if pids and not self.settings.policy.observe:
            commands.append(Look(pids=pids))
        commands += [
            Compare(pids=pids, group=group, round=round_)
            for (group, round_), pids in wanted(view) + wanted_paths(view)
        ]
        if self.ending is None and not self.interrupted:
            for due in self.returns.due(view, self.replaced_steps):
                commands.append(due)
                self.ending = self.ending or (due if isinstance(due, End) else None)
        if self.ending is None and not self.interrupted:
            found = verdict(view, rolls, staged, self.settings.policy)
            if found is not None:
                self.ending = End(outcome=found.outcome, reason=found.reason)
                commands.append(self.ending)
        return commands

    def _due(self, now: float, news: bool) -> bool:
        """Whether to look now: where the last has come, or has had its time, at once."""
        told = next(
            (r.box.declared for r in self.records.values() if r.box and r.box.declared), None
        )
        stage = (
            told is not None and self.answers >= told.world_size,
            now >= self.arrived_at + self.settings.timeout,
            self.crossing.asked_at is None,
            bool(self.crossing.awaited),
            self.ending is None,
        )
        few = not news or self.interrupted
        return self.turns.due(now, 0 if few else len(self.records), stage)

    def _take(self, now: float, event: Event) -> None:
        match event:
            case Launched():
                self._replaced(event.worker)
                many = self.settings.launched > 1
                rank = event.worker if many else self.settings.rank
                self.records[event.pid] = self._record(event.pid, event.worker, event.at, rank)
                self.setbacks.began(event.pid)
                if not split_key(event.pid)[0]:
                    self.workers.add(event.pid)
            case Seen():
                record = self.records.get(event.pid)
                if record is None:
                    rank = self._rank(event)
                    record = self._record(event.pid, event.worker, event.at, rank, event.host)
                    self.records[event.pid] = record
                box = self.shared.box(event.box, record.box)
                if record.see(event, box):
                    self._progress(event.at)
                    if box is not None and box.phase == Phase.ARRIVED:
                        self.arrived_at = max(self.arrived_at, box.phase_since)
                self._numbered(event)
            case Exited():
                self._exited(event)
            case Looked():
                if event.pid in self.records:
                    self.records[event.pid].look(event)
            case Exchanged():
                if event.pid in self.records:
                    self.records[event.pid].exchange(event)
            case Trace():
                if event.pid in self.records:
                    self.records[event.pid].trace(event.traced)
            case Measured():
                self._measured(event)
            case Locks():
                self.lock_waits = event.waits
            case Interrupted():
                self.interrupted = self.interrupted or event.signal
            case Kept():
                self.returns.kept(event)
            case Overslept():
                self.progress_at = now
                self.gauges.clear()
                for record in self.records.values():
                    record.restart_windows(now)
            case Answered():
                if event.pid in self.records:
                    self.answers += not self.records[event.pid].facts
                    self.records[event.pid].answer(self.shared.facts(event.facts))
            case _:
                self.crossing.take(event)
                if isinstance(event, RoleTaken) and not event.leads:
                    self._hand_over()
                if isinstance(event, AgentGone):
                    self.away[event.agent] = event.at
                elif isinstance(event, AgentHere):
                    self.away.pop(event.agent, None)

    def _may_set_back(self, record: Record) -> None:
        """The variables lie in servers, and the chief restores all of them when it comes back."""
        assert record.exit is not None
        who = record.member(False).who
        first = chief_of(r.member(False) for r in self.records.values())
        if who.job in SERVER_JOBS or (who.job, who.index) == first:
            how = self.returns.evicted(record.pid) or how_ended(record.exit)
            self.setbacks.ended(who, how)

    def _ended(self, pid: int, now: float) -> bool:
        """Whether the rules have had the time that they take for its end."""
        end = self.records[pid].exit
        return end is not None and now - end.at > TOGETHER

    def _numbered(self, seen: Seen) -> None:
        if seen.box is None or seen.box.numbered is None:
            return
        found = self.setbacks.take(seen.at, seen.pid, seen.box.numbered)
        if found is not None:
            self.returns.lost(found)

    def _hand_over(self) -> None:
        """Another host leads from now on: of those on other hosts we hear nothing any more."""
        for pid in [p for p in self.records if split_key(p)[0]]:
            del self.records[pid]
        self.away.clear()

    def _measured(self, event: Measured) -> None:
        """A start has a pace of its own: what is used is followed once all train, or serve who do."""
        if self._starts is None:  # asked once for all hosts that are heard now
            boxes = [r.box for r in self.records.values() if r.box is not None and r.exit is None]
            self._starts = any(not works(b) for b in boxes if b.declared is not None)
        if self._starts:
            self.gauges.clear()
        else:
            self.gauges.take(event.at, event.host or self.settings.host, event.readings)

    def _replaced(self, worker: int) -> None:
        """Another process is this worker now."""
        self.replaced |= {p for p, r in self.records.items() if r.worker == worker}
        self.workers -= self.replaced

    def _forget(self, now: float) -> None:
        """Whose place another has taken stays until the rules have said how it ended."""
        for pid in tuple(self.replaced):
            record = self.records[pid]
            judged = pid in self.judged and record.exit is not None
            if record.exit is None or (judged and now - record.exit.at >= TOLD):
                del self.records[pid]
                self.replaced.discard(pid)
                self.judged.discard(pid)
                self.replaced_steps += record.box.step if record.box is not None else 0

    def _rank(self, seen: Seen) -> int:
        """What its environment says, or what its agent was started as."""
        agent = self.crossing.agents.get(split_key(seen.pid)[0])
        return agent.rank if seen.rank < 0 and agent is not None and agent.agent else seen.rank

    def _miss(self, now: float) -> None:
        """An agent whose stream broke usually comes again at once; after a while what became of its
        members is not seen any more."""
        gone = {agent: at for agent, at in self.away.items() if now - at >= RETURN}
        if not gone:
            return
        for agent in gone:
            del self.away[agent]
        for record in self.records.values():
            at = gone.get(split_key(record.pid)[0])
            if at is not None and record.exit is None:
                self._exited(Exited(pid=record.pid, at=at), lost=True)

    def _record(self, pid: int, worker: int, at: float, rank: int, host: str = "") -> Record:
        self._progress(at)
        task = self.settings.tasks[worker] if self.settings.tasks and worker >= 0 else None
        return Record(pid, worker, host or self.settings.host, at, rank, task)

    def _progress(self, at: float) -> None:
        self.progress_at = max(self.progress_at, at)
        self.lookout.moved()

    def _exited(self, event: Exited, lost: bool = False) -> None:
        record = self.records.get(event.pid)
        if record is None or record.exit is not None:
            return
        how = Exit(
            at=event.at,
            code=event.code,
            signal=event.signal,
            oom=event.oom,
            ours=self.ending is not None
            or bool(self.interrupted)
            or bool(self.returns.evicted(event.pid)),
            last_line=event.last_line,
            lost=lost,
        )
        record.end(how, lost)
        if self.setbacks.top is not None and (event.signal is not None or event.code is not None):
            self._may_set_back(record)
        self.gauges.forget(record.host, split_key(record.pid)[1])
        self._progress(event.at)

    def view(self, now: float) -> JobView:
        """The frozen picture of the job that rules and faces read."""
        ordered = sorted(self.records.values(), key=lambda r: (r.worker, r.rank, r.pid))
        launchers = self._launchers()
        members = tuple(r.member(r.pid in launchers) for r in ordered)
        step = self.median_step
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
            lock_waits=self.lock_waits,
            uses=self.gauges.uses,
            setbacks=tuple(self.setbacks.known),
            ending=self.ending is not None,
            ended=bool(members) and not any(m.alive for m in members),
            **self.crossing.facts(),
        )

    def recent(self, now: float) -> JobView:
        """A picture for who only wants to show something: of many members the one of the last look."""
        few = len(self.records) < MANY
        return self.view(now) if few or self._last is None else self._last

    def _launchers(self) -> set[int]:
        """Workers that declared nothing themselves and whose children are the members."""
        above = {r.worker for r in self.records.values() if r.declared}
        ours = [r for p in self.workers if (r := self.records.get(p)) is not None]
        wrapped = self.settings.wrapped
        return {r.pid for r in ours if not r.declared and (wrapped or r.worker in above)}

    @property
    def median_step(self) -> float | None:
        """The job's median step (s): the median of its members' own; None before three steps."""
        intervals = [i for r in self.records.values() if (i := r.interval) is not None]
        return median(intervals) if intervals else None

    def _gate(self, now: float, rolls: tuple[Roll, ...], startup: list[Claim]) -> Iterator[Command]:
        """Lets a complete roll call through; what a startup rule proved wrong stays held."""
        if self.ending is not None:
            return
        self.crossing.size = max((r.size for r in rolls), default=0)
        waved_on = self.crossing.waved_on
        if any(proven(claim) for claim in startup) and not waved_on:
            if not self.settings.policy.only_reports or self.crossing.stale:
                return
            waved_on = "told; the framework's own timeout decides (--timeout S makes it a bound)"
        for roll in rolls:
            if roll.complete and self.crossing.leads and not waved_on:
                untold = any(not m.facts for m in roll.held)
                if untold and now - roll.last_arrival < ANSWERS:
                    continue
                if any(split_key(m.called)[0] in self.away for m in roll.held):
                    continue  # the word would not reach it, and the port would be gone
                yield from self.crossing.trials(now, roll)
                if not self.crossing.tried(now):
                    continue
            if not roll.complete and not waved_on:
                continue
            for member in roll.held:
                yield LetThrough(pid=member.called, round=roll.round)
            if self.rolled_at is None:
                self.rolled_at = now
                done = _all_aboard(roll, now - self.at) if roll.complete else waved_on
                yield Note(text=done)

    def boarded(self, now: float) -> None:
        """A member was let through, here or by the host where all meet."""
        if self.rolled_at is None:
            self.rolled_at = now

    def exit_of(self, worker: int) -> Exit | None:
        """How this worker ended, if it has; None too where allaboard ended it."""
        ends = [
            r.exit for r in self.records.values() if r.worker == worker and r.pid in self.workers
        ]
        found = next((e for e in reversed(ends) if e is not None), None)
        return None if found is None or found.ours else found

    def outcome(self) -> tuple[Outcome, str]:
        """How the job ended, once no process of it is left."""
        if self.interrupted:
            return Outcome.INTERRUPTED, "interrupted"
        if self.ending is not None:
            return self.ending.outcome, self.ending.reason
        ends = [r.exit for r in self.records.values() if r.pid in self.workers and r.exit]
        bad = [e for e in ends if e.signal is not None or e.code != 0]
        if bad:
            return Outcome.FAILED, f"{len(bad)} of {len(ends)} workers failed"
        return Outcome.COMPLETED, "every worker ended with exit code 0"


def _all_aboard(roll: Roll, seconds: float) -> str:
    first = roll.here[0].declared
    assert first is not None
    where = f", {first.place}" if first.place else ""
    return f"all {roll.size} aboard after {seconds:.1f} s ({first.call}{where})"
