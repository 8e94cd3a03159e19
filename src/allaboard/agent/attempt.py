"""One launch of the workers, watched from their start to their end."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from pathlib import Path

from allaboard.agent.announcer import Announcer
from allaboard.agent.arrival_fifo import ArrivalFifo
from allaboard.agent.background_check import BackgroundCheck
from allaboard.agent.command_executor import CommandExecutor
from allaboard.agent.control_plane import ControlPlane
from allaboard.agent.coordinator_settings import build_settings
from allaboard.agent.options import Options
from allaboard.agent.port_conflict import PortConflicts
from allaboard.agent.process_watcher import ProcessWatcher
from allaboard.agent.ps_snapshot_process import SnapshotProcess
from allaboard.agent.shutdown import Shutdown
from allaboard.agent.standby_process import StandbyProcess
from allaboard.agent.traffic import TrafficSampler
from allaboard.agent.worker_output import WorkerOutput
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.progress_line import progress_line
from allaboard.facts import Interruption, Outcome, RoundEnd, RoundReport
from allaboard.hosts import proc
from allaboard.launch.local_workers import Launch, folder
from allaboard.policy.restart.attempt_summary import round_end
from allaboard.protocol.commands import AnnounceFinding, Command, ConcludeRound, EndJob, ShowNote
from allaboard.protocol.events import AgentInterrupted, AgentOverslept, CoordinatorChanged, Event
from allaboard.protocol.job_state_port import JobStatePort
from allaboard.rules.engine.catalogue import load_job_rules

SPINNER_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FAST_POLL_S, START_POLL_S, TRAINING_POLL_S = 0.05, 0.25, 1.0
"""Seconds between two looks: while the job ends; while it starts, nobody has made a step for a moment, or a
part of it that stands is looked at; while it trains. (That a worker ended is not looked for: the kernel
tells.) While it starts a glance at the workers' phases every QUICK seconds tells whether to look at once."""
QUIET_AFTER_START_S = 5.0
"""Seconds after the roll call in which the workers have the machine to themselves: nothing is read then that
can be read later."""
NO_STEP_S = 1.0
"""Seconds without a step after which it is looked more often."""
RARE_POLL_S = 1.0
"""Seconds between two looks at what changes rarely."""
MAX_LATENESS_S = 2.0
"""An agent that comes this many seconds late was not scheduled; its windows mean nothing."""
PULSE_INTERVAL_S = 60.0
"""Seconds between two signs of life in the journal."""
LEFTOVER_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL for what the workers left behind."""
MAX_SHOWN_PROCESSES, MAX_COMMAND_CHARS = 4, 80
"""Processes that are left running and said, and characters of their commands."""
DRAIN_TIMEOUT_S = 5.0
"""Seconds for the last lines, where something that was left behind holds a pipe."""


class Attempt:
    """The loop around the state of the job. It decides nothing."""

    def __init__(
        self,
        launch: Launch,
        options: Options,
        voice: Announcer,
        reading: BackgroundCheck,
        restarted: int = 0,
    ) -> None:
        plan = launch.plan
        self.launch = launch
        self.options = options
        self.voice = voice
        self.clock = voice.clock
        self.journal = voice.journal
        self.reading = reading
        self.wake = asyncio.Event()
        self.watch = ProcessWatcher(
            launch.boxes,
            (plan.run_dir, Path(folder())),
            wrapped=options.wrapped,
            struck=lambda worker: self.workers.struck(worker),
            beside=options.joined.beside if options.joined is not None else "",
        )
        self.bell = ArrivalFifo(launch.boxes, self.wake.set)
        self.traffic = TrafficSampler(self.clock.monotonic)
        self.taken = PortConflicts()
        # Under a launcher of one process a rank, what is printed is that rank's.
        joined = options.joined if not options.wrapped else None
        rank = max(joined.rank, 0) if joined is not None else 0
        logs = plan.run_dir / "logs"
        self.streams = WorkerOutput(launch.workers, logs, voice.terminal, plan.tasks, rank)
        self.workers = WorkerProcesses(
            launch.reaper,
            self.streams,
            self.watch,
            voice.say,
            self.wake.set,
            lambda worker, pid: self.journal.worker(worker, pid, launch.boxes),
        )
        self.ending = Shutdown(self.workers, options.grace, voice.say)
        state = build_settings(launch, options, restarted)
        self.job: JobStatePort = JobState(
            state, launch.at, load_job_rules().entries, self.clock.utc
        )
        self.reserve = StandbyProcess(launch, self.workers, options.restarts)
        self.snapshots = SnapshotProcess(launch, self.workers, voice, self.wake.set)
        self.deeds = CommandExecutor(
            launch,
            options,
            self.job,
            self.watch,
            self.ending,
            self.workers,
            self.streams,
            voice,
            self.wake.set,
            self.reserve,
        )
        self.council = ControlPlane(
            launch, options, self.job, self.watch, self.wake.set, lambda: self.workers.over
        )
        self.events: list[Event] = []
        self.interrupted = 0
        self.next_slow = 0.0
        self.next_pulse = 0.0
        self.broken = False
        self.told_needed = False
        self.told_trouble = False
        self.used = restarted

    async def run(self) -> None:
        """Returns when every worker has ended."""
        loop = asyncio.get_running_loop()
        for log in self.streams.logs:
            log.trouble = self.voice.say
        if self.launch.plan.round:
            self.streams.mark(f"--- allaboard: round {self.launch.plan.round} ---")
        self.workers.listen(loop)
        self.bell.listen(loop)
        loop.add_reader(self.watch.ends.fileno(), self._somebody_ended)
        self.streams.listen(loop)
        self.ending.listen(loop, self._interrupted)
        self.council.start()
        last = self.clock.monotonic()
        while True:
            now = self.clock.monotonic()
            if now - last > MAX_LATENESS_S + TRAINING_POLL_S:
                self.events.append(AgentOverslept(seconds=now - last))
            last = now
            self._careful_tick(now)
            if self.workers.over and not (self.council.stays(now) or self._needed(now)):
                return
            self.wake.clear()
            # Not wait_for: its task and its cancelling cost as much as a look at two workers.
            pause = self._pause(now)
            first = FAST_POLL_S if self.job.status.opened_at is None else pause
            self.alarm = loop.call_later(first, self._glance, now + pause)
            await self.wake.wait()
            self.alarm.cancel()

    def _somebody_ended(self) -> None:
        """Below a launcher, which is about to wait for it."""
        self.watch.ends.take()
        self.wake.set()

    def _glance(self, due: float) -> None:
        """Wakes the loop where there is something to look at, or the time (s) has come anyway."""
        if self.clock.monotonic() >= due or self.watch.moved():
            self.wake.set()
        else:
            self.alarm = asyncio.get_running_loop().call_later(FAST_POLL_S, self._glance, due)

    def _needed(self, now: float) -> bool:
        """Whether this host has to stay for others' sake, though its own workers have ended."""
        if self.interrupted or self.job.status.ending is not None:
            return False
        rest = self.council.awaited(now)
        if rest and not self.told_needed:
            self.told_needed = True
            self.voice.say(f"done here; ends what serves elsewhere when {rest} ended too")
        return bool(rest)

    async def close(self) -> None:
        """Ends what the workers left behind, reads their last lines, and says the last findings."""
        self.ending.cancel()
        loop = asyncio.get_running_loop()
        self.bell.close(loop)
        loop.remove_reader(self.watch.ends.fileno())
        self.watch.ends.close()
        bond = self.council.bond
        # Where another host decides for all, it has told what was found.
        is_local = bond is None or bond.told is None
        self.deeds.cancel()
        self.reserve.close()
        self.snapshots.close()
        spare = self.launch.keeper > 0 and self._ended_well()
        self.workers.end(LEFTOVER_GRACE_S, spare)
        await self.streams.drain(DRAIN_TIMEOUT_S)
        await self.deeds.over()
        if spare:
            await self._say_who_is_left()
        if bond is None:
            self.council.close()
        now = self.clock.monotonic()
        commands: list[Command] = []
        if self.job.status.leader_decides == is_local:
            commands += self.job.handle(now, CoordinatorChanged(is_local=is_local))
        commands += self.job.handle(now)
        for command in self.council.last_words(now, commands):
            if isinstance(command, AnnounceFinding):
                self.deeds.announce(now, command.finding)
        self.journal.view(self.clock.utc(now), self.job.status.view(now))

    def _ended_well(self) -> bool:
        """Whether all came to their end by themselves: what they meant to outlive them may."""
        if self.interrupted or self.workers.failed_to_start or self.job.status.ending is not None:
            return False
        elsewhere = self.told is None or self.told.report.outcome is Outcome.COMPLETED
        return elsewhere and self.job.status.outcome[0] is Outcome.COMPLETED

    async def _say_who_is_left(self) -> None:
        """Where something is ended first, that may take longer than there is to say."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.workers.all_ended.wait(), DRAIN_TIMEOUT_S)
        for pid in self.workers.left[:MAX_SHOWN_PROCESSES]:
            command = " ".join(proc.command_line(pid))[:MAX_COMMAND_CHARS]
            said = f"left running, since it has a session and streams of its own: process {pid} ({command})"
            self.voice.say(said)

    @property
    def told(self) -> ConcludeRound | None:
        """What the host that decides for all has told of this round; None where this one decides."""
        bond = self.council.bond
        return bond.told if bond is not None and not self.interrupted else None

    @property
    def signal(self) -> int:
        """By which the user ended the job, on this host or another one; 0 where nobody did."""
        elsewhere = self.elsewhere
        return self.interrupted if elsewhere is None else elsewhere.signal

    @property
    def elsewhere(self) -> Interruption | None:
        """The interruption of another host with which the job has ended here."""
        return None if self.interrupted else self.job.status.interruption_behind_end

    @property
    def hindrance(self) -> str:
        """Why another host cannot take part in a further round; "" where nothing is in its way."""
        bond = self.council.bond
        return bond.hindrance() if bond is not None else ""

    @property
    def orphaned(self) -> bool:
        """Whether the host that decides for all has gone without a word of how the job ended."""
        return self.council.bond is not None and self.council.bond.orphaned

    def part(self, report: RoundReport) -> None:
        """Tells the other hosts what was decided, and leaves them."""
        if self.council.bond is not None:
            self.council.bond.tell(report, self.job.status.task_returns)
        self.council.close()

    async def clear(self) -> None:
        """Returns when nothing of this round is left: no process, no port. It was closed before."""
        await self.workers.all_ended.wait()
        self.workers.leave(asyncio.get_running_loop())
        self.launch.release_ports()

    async def interrupted_within(self, seconds: float) -> bool:
        """Whether the user ended the job after its workers had ended, or does so in this time (s)."""
        deadline = self.clock.monotonic() + seconds
        while not self.interrupted and (left := deadline - self.clock.monotonic()) > 0:
            self.wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), left)
        return self.interrupted != 0

    def result(self) -> RoundEnd:
        """How it went, once it is closed."""
        outcome, reason = self.job.status.outcome
        if self.interrupted:
            outcome, reason = Outcome.INTERRUPTED, "interrupted"
        elif self.workers.failed_to_start and outcome is not Outcome.INTERRUPTED:
            outcome, reason = Outcome.FAILED, "a worker could not be started"
        view = self.job.status.view(self.clock.monotonic())
        codes = tuple(dict.fromkeys(f.rule for f in self.job.status.findings))
        ending = self.job.status.ending
        final = ending is not None and ending.final
        return round_end(self.launch.plan.round, view, outcome, reason, codes, final)

    def _careful_tick(self, now: float) -> None:
        """A fault of ours must not end somebody's training: it is told once, and watching goes on."""
        try:
            self._tick(now)
        except Exception as error:
            if not self.broken:
                self.broken = True
                self.journal.event(self.clock.utc(now), traceback.format_exc())
                self.voice.say(f"a fault of allaboard's own, training goes on: {error!r}")

    def _tick(self, now: float) -> None:
        sources = (self, self.workers, self.deeds, self.snapshots)
        events = [e for source in sources for e in source.events]
        for source in sources:
            source.events = []
        slow = now >= self.next_slow
        if slow:
            self.next_slow = now + RARE_POLL_S
            self.workers.count_ooms()
        # Of a process that runs by itself the only Python child that is known is this agent.
        awaited = self.job.status.opened_at is None and self.launch.plan.size == 1
        awaited = awaited and not self.options.attached
        events += self.watch.look(now, candidates=slow and awaited and not self.options.observe)
        events += self.traffic.look(now, events)
        events += self.taken.look(now, events)
        if self.traffic.trouble and not self.told_trouble:
            self.told_trouble = True
            self.voice.say(self.traffic.trouble)
        if self.job.status.opened_at is not None:
            events += self.watch.measure(now)
        self.deeds.beat(now)
        commands = self._carry_out(now, self.council.decided(now, events))
        if self.ending.begun:
            self.deeds.drop()
        elif self.launch.plan.returns:
            used = self.used + len(self.job.status.task_returns)
            view = self.job.status.view(now)
            self.reserve.tend(view, used)
            self.snapshots.tend(view)
        self._keep(now, commands)
        rolled = self.job.status.opened_at
        self.voice.note(
            now, self.reading.take(now, rolled is None or now < rolled + QUIET_AFTER_START_S)
        )
        if self.voice.terminal.live:
            text = (
                progress_line(self.job.status.recent_view(now))
                if not self.job.status.leader_decides
                else self._elsewhere()
            )
            turn = SPINNER_FRAMES[int(now * 8) % len(SPINNER_FRAMES)]
            self.voice.terminal.status(f"{turn} {text}" if text else "")

    def _carry_out(self, now: float, commands: list[Command]) -> list[Command]:
        """Executes the commands, and those that follow from them; returns all of them.

        What another coordinator decided is handed to this host's own state at once: what is read of it from here
        on must not be older than what was done."""
        for command in commands:
            self.deeds.do(now, command)
        decisions, self.deeds.decisions = self.deeds.decisions, []
        if not decisions:
            return commands
        following = self.council.learn(now, decisions)
        for command in following:
            self.deeds.do(now, command)
        return commands + following

    def _elsewhere(self) -> str:
        """The line of a host whose members another host counts."""
        return self.deeds.waited if self.job.status.opened_at is None else ""

    def _keep(self, now: float, commands: list[Command]) -> None:
        """Leaves in the journal what someone needs who was not there."""
        if any(isinstance(c, AnnounceFinding | ShowNote | EndJob) for c in commands):
            self.journal.view(self.clock.utc(now), self.job.status.view(now))
        elif now >= self.next_pulse:
            self.next_pulse = now + PULSE_INTERVAL_S
            self.journal.pulse(self.clock.utc(now), self.job.status.view(now))

    def _pause(self, now: float) -> float:
        if self.ending.begun:
            return FAST_POLL_S
        if self.job.status.opened_at is None or self.job.status.watches_stall:
            return START_POLL_S
        return START_POLL_S if now - self.job.status.progress_at > NO_STEP_S else TRAINING_POLL_S

    def _interrupted(self, number: int) -> None:
        self.interrupted = self.interrupted or number
        self.events.append(AgentInterrupted(signal=number, at=self.clock.monotonic()))
        self.wake.set()
