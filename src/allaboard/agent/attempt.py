"""One launch of the workers, watched from their start to their end."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable

from allaboard.agent.announcer import Announcer
from allaboard.agent.attempt_end import AttemptEnd
from allaboard.agent.background_check import FindingSource
from allaboard.agent.command_executor import CommandExecutor
from allaboard.agent.control_plane import ControlPlane
from allaboard.agent.coordinator_settings import build_settings
from allaboard.agent.host_observer import HostObserver
from allaboard.agent.options import Options
from allaboard.agent.output.progress_display import ProgressDisplay
from allaboard.agent.output.worker_output import WorkerOutput
from allaboard.agent.shutdown import Shutdown
from allaboard.agent.standbys import Standbys
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.coordinator.job_state import JobState
from allaboard.facts import RoundReport
from allaboard.feed.job_feed import JobFeed
from allaboard.hosts import proc
from allaboard.launch.local_workers import Launch
from allaboard.launch.standby_ranks import StandbyRanks
from allaboard.protocol.commands import AnnounceFinding, Command, EndJob, ShowNote
from allaboard.protocol.events import (
    AgentInterrupted,
    AgentOverslept,
    CoordinatorChanged,
    Event,
    SignalForwarded,
)
from allaboard.protocol.job_state_port import JobStatePort
from allaboard.rules.engine.catalogue import load_job_rules
from allaboard.schedulers.job_signals import JobSignals

FAST_POLL_S, START_POLL_S, TRAINING_POLL_S = 0.05, 0.25, 1.0
"""Seconds between two looks at all processes: while the job ends; while it starts, has made no step for a
moment, or a stalled part of it is examined; while it trains. (The kernel reports that a worker exited, so
that needs no poll.) During the start, a cheap glance at the workers' phases every `FAST_POLL_S` decides
whether to look at once."""
QUIET_AFTER_START_S = 5.0
"""Seconds after the roll call during which nothing is read that can wait: the workers have the machine to
themselves."""
NO_STEP_S = 1.0
"""Seconds without a step after which the agent polls as often as during the start."""
MAX_LATENESS_S = 2.0
"""An agent that wakes up this many seconds late was not scheduled; all time windows start again."""
PULSE_INTERVAL_S = 60.0
"""Seconds between two progress entries in the journal of a healthy job."""
LEFTOVER_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL for processes that the workers left behind."""
MAX_SHOWN_PROCESSES, MAX_COMMAND_CHARS = 4, 80
"""Bounds of the note about processes that are left running: their number, and characters of each command."""
DRAIN_TIMEOUT_S = 5.0
"""Seconds to wait for the workers' last lines if a process that they left behind holds a pipe open."""


class Attempt:
    """The loop around the state of the job: collects events, hands them over, executes the answers. It
    decides nothing.

    ``restarted`` counts the starts before this attempt.
    """

    def __init__(
        self,
        launch: Launch,
        options: Options,
        announcer: Announcer,
        background_check: FindingSource,
        restarted: int = 0,
        feed: JobFeed | None = None,
        progress_display: ProgressDisplay | None = None,
        signals: JobSignals | None = None,
        standby_ranks: StandbyRanks | None = None,
    ) -> None:
        plan = launch.plan
        self.launch = launch
        self.options = options
        self.announcer = announcer
        self.clock = announcer.clock
        self.journal = announcer.journal
        self.background_check = background_check
        self.wake = asyncio.Event()
        self.feed = feed
        self.progress_display = progress_display
        self.signals = signals
        self.observer = HostObserver(
            launch, options, self.clock, lambda: self.workers, self.wake.set, announcer.write_line
        )
        self.process_watcher = self.observer.process_watcher
        # A launcher that starts one agent per rank: the output of the only worker is labelled with that rank.
        joined = options.joined if not options.wrapped else None
        rank = max(joined.rank, 0) if joined is not None else 0
        logs = plan.run_dir / "logs"
        self.worker_output = WorkerOutput(
            launch.workers,
            logs,
            announcer.terminal,
            announcer.write_line,
            plan.tasks,
            rank,
            options.selection,
        )
        self.workers = WorkerProcesses(
            launch.reaper,
            self.worker_output,
            self.process_watcher,
            announcer.write_line,
            self.wake.set,
            lambda worker, pid: self.journal.write_worker(worker, pid, launch.boxes),
            lambda worker: (
                "{} {}".format(*plan.tasks[worker]) if plan.tasks else f"worker {worker + rank}"
            ),
        )
        self.shutdown = Shutdown(self.workers, options.grace, announcer.write_line)
        state = build_settings(launch, options, restarted)
        self.job: JobStatePort = JobState(
            state, launch.started_at, load_job_rules().entries, self.clock.utc
        )
        self.standbys = Standbys(
            launch,
            options,
            self.workers,
            announcer,
            self.wake.set,
            standby_ranks or StandbyRanks(0),
            restarted,
        )
        self.command_executor = CommandExecutor(
            launch,
            options,
            self.job,
            self.process_watcher,
            self.shutdown,
            self.workers,
            self.worker_output,
            announcer,
            self.wake.set,
            self.standbys.task,
        )
        self.control_plane = ControlPlane(
            launch,
            options,
            self.job,
            self.process_watcher,
            self.wake.set,
            lambda: self.workers.all_exited,
        )
        self.end = AttemptEnd(plan.round, self.job, self.workers, self.control_plane, self.clock)
        self.events: list[Event] = []
        self.glance_timer: asyncio.TimerHandle | None = None
        self.next_pulse = 0.0
        self.has_faulted = False
        self.has_explained_waiting = False

    async def run(self) -> None:
        """Watch the workers; return when all have ended and no other host needs this agent."""
        loop = asyncio.get_running_loop()
        if self.launch.plan.round:
            self.worker_output.write_marker(f"--- allaboard: round {self.launch.plan.round} ---")
        # Readers first, signal handlers last: a Ctrl-C in between still has Python's default effect.
        self.workers.start_listening(loop)
        self.observer.start(loop)
        self.worker_output.start_reading(loop)
        for worker in self.launch.workers:
            if worker.pid:
                self.workers.adopt_process(worker.number, worker.pid, self.launch.started_at)
        self.shutdown.install_signal_handlers(loop, self._on_interrupt, self._on_forward)
        self.control_plane.start()
        if self.feed is not None:
            self.feed.set_wake(self.wake.set)
        last_tick = self.clock.monotonic()
        while True:
            now = self.clock.monotonic()
            if now - last_tick > MAX_LATENESS_S + TRAINING_POLL_S:
                self.events.append(AgentOverslept(seconds=now - last_tick))
            last_tick = now
            # The tick decides before the end is checked, so that the last events are always judged.
            self._guarded_tick(now)
            if self.workers.all_exited and not (
                self.control_plane.must_stay(now) or self._waits_for_others(now)
            ):
                return
            self.wake.clear()
            # Not asyncio.wait_for: making and cancelling its task costs as much as a look at two workers.
            pause = self._poll_interval(now)
            first_glance = FAST_POLL_S if self.job.status.opened_at is None else pause
            self.glance_timer = loop.call_later(first_glance, self._glance, now + pause)
            await self.wake.wait()
            # _glance may have replaced the timer meanwhile: the newest one is cancelled.
            self.glance_timer.cancel()

    def _glance(self, deadline: float) -> None:
        """Wake the loop if something has changed or ``deadline`` (s, monotonic) has passed; else look again
        soon."""
        if self.clock.monotonic() >= deadline or self.process_watcher.has_changed():
            self.wake.set()
        else:
            self.glance_timer = asyncio.get_running_loop().call_later(
                FAST_POLL_S, self._glance, deadline
            )

    def _waits_for_others(self, now: float) -> bool:
        """Return True if the agent has to stay although its own workers have ended.

        Parameter servers on other hosts are told to end only by the host where the last worker ends.
        """
        if self.end.interrupt_signal or self.job.status.ending is not None:
            return False
        awaited = self.control_plane.awaited_members(now)
        if awaited and not self.has_explained_waiting:
            self.has_explained_waiting = True
            self.announcer.write_line(
                f"all workers here are done; the parameter servers end when {awaited} has finished too"
            )
        return bool(awaited)

    async def close(self) -> None:
        """End what the workers left behind, read their last lines, and announce the last findings."""
        # The order matters: first nothing may send signals or start processes any more, then the rest is
        # ended, then the pipes are drained, and only then are the last findings made.
        self.shutdown.cancel()
        self.observer.close(asyncio.get_running_loop())
        restart = self.control_plane.multi_host_restart
        # If another host decides for all, it has announced the findings already.
        is_local = restart is None or restart.leader_decision is None
        self.command_executor.cancel_sampling()
        self.standbys.close()
        keep_sessions = self.launch.reaper_pid > 0 and self.end.is_good
        self.workers.end_all(LEFTOVER_GRACE_S, keep_sessions)
        await self.worker_output.drain_pipes(DRAIN_TIMEOUT_S)
        await self.command_executor.wait_for_sampling()
        if keep_sessions:
            await self._report_left_running()
        if restart is None:
            self.control_plane.close()
        try:
            self._announce_last_findings(is_local)
        except Exception:
            # The report and the exit code are owed to the user whatever is wrong with us.
            self.journal.write_event(self.clock.utc(self.clock.monotonic()), traceback.format_exc())

    def _announce_last_findings(self, is_local: bool) -> None:
        """Judge the job for the last time; ``is_local``: this host decides."""
        now = self.clock.monotonic()
        commands: list[Command] = []
        if self.job.status.leader_decides == is_local:
            commands += self.job.handle(now, CoordinatorChanged(is_local=is_local))
        commands += self.job.handle(now)
        self.control_plane.share_last_findings(commands)
        for command in commands:
            if isinstance(command, AnnounceFinding):
                self.command_executor.announce_finding(now, command.finding)
        self.journal.write_view(self.clock.utc(now), self.job.status.view(now))

    async def _report_left_running(self) -> None:
        """Print which detached processes go on. Wait for the reaper's list, but no longer than
        `DRAIN_TIMEOUT_S`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.workers.all_ended.wait(), DRAIN_TIMEOUT_S)
        for pid in self.workers.left_running[:MAX_SHOWN_PROCESSES]:
            command = " ".join(proc.command_line(pid))[:MAX_COMMAND_CHARS]
            text = f"left running because it has its own session and streams: pid {pid} ({command})"
            self.announcer.write_line(text)

    def leave_other_hosts(self, report: RoundReport) -> None:
        """Send the decision about this round to the other hosts, and close the connections to them."""
        if self.control_plane.multi_host_restart is not None:
            self.control_plane.multi_host_restart.send_decision(
                report, self.job.status.task_returns
            )
        self.control_plane.close()

    async def wait_until_clear(self) -> None:
        """Return when no process and no port of this round is left. To be called after `close`."""
        await self.workers.all_ended.wait()
        self.workers.stop_listening(asyncio.get_running_loop())
        self.launch.release_ports()

    async def interrupted_within(self, seconds: float) -> bool:
        """Wait up to ``seconds``; return True if the user has ended the job meanwhile or before."""
        deadline = self.clock.monotonic() + seconds
        while (
            not self.end.interrupt_signal and (remaining_s := deadline - self.clock.monotonic()) > 0
        ):
            self.wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), remaining_s)
        return self.end.interrupt_signal != 0

    def _guarded_tick(self, now: float) -> None:
        """Run one tick. An internal error must not end somebody's training: it is reported once, and watching
        goes on."""
        try:
            self._tick(now)
        except Exception as error:
            if not self.has_faulted:
                self.has_faulted = True
                self.journal.write_event(self.clock.utc(now), traceback.format_exc())
                self.announcer.write_line(
                    f"internal error in allaboard, training continues: {error!r}"
                )
            self._open_gate_after_fault(now, error)

    def _open_gate_after_fault(self, now: float, error: Exception) -> None:
        """Let the members go on that wait at the gate: whoever holds them must be able to decide."""
        if not self.command_executor.is_anyone_at_gate():
            return
        reason = f"internal error in allaboard ({type(error).__name__})"
        # Each by itself: what has failed may be a part of it.
        steps: tuple[Callable[[], None], ...] = (
            lambda: self.control_plane.open_all_gates(reason),
            lambda: self.command_executor.open_held_gates(now, reason),
        )
        for step in steps:
            try:
                step()
            except Exception:
                self.journal.write_event(self.clock.utc(now), traceback.format_exc())

    def _tick(self, now: float) -> None:
        sources = (self, self.workers, self.command_executor, self.standbys.snapshots)
        events = [e for source in sources for e in source.events]
        for source in sources:
            source.events.clear()
        events += self.observer.collect_events(now, self.job.status.opened_at is not None)
        # Before the decisions: members at the gate judge by the heartbeat whether their agent is alive.
        self.command_executor.write_heartbeats(now)
        commands = self._carry_out(now, self.control_plane.decide_commands(now, events))
        if self.shutdown.has_begun:
            self.command_executor.restarts.cancel_all()
        else:
            self.standbys.start_if_due(self.job.status, now)
        self._write_journal(now, commands)
        self._feed_watchers(now)
        if self.signals is not None:
            self.signals.update(now, self.job.status, time.time())
        rolled_at = self.job.status.opened_at
        self.announcer.announce_script_findings(
            now,
            self.background_check.take_findings(
                now, rolled_at is None or now < rolled_at + QUIET_AFTER_START_S
            ),
        )
        if self.progress_display is not None:
            waiting_note = self.command_executor.waiting_note
            self.progress_display.update(
                now, self.job.status, waiting_note, self.shutdown.countdown
            )

    def _feed_watchers(self, now: float) -> None:
        """Publish the state of the job, and take the stacks that a reader of the feed asks for."""
        if self.feed is None:
            return
        pids = self.feed.update(now, self.job.status, self.control_plane)
        if pids and not self.shutdown.has_begun:
            self._carry_out(now, self.control_plane.sample_stacks(now, pids))

    def _carry_out(self, now: float, commands: list[Command]) -> list[Command]:
        """Executes the commands, and those that follow from them; returns all of them.

        What another coordinator decided is handed to this host's own state at once: what is read of it from
        here on must not be older than what was done."""
        for command in commands:
            self.command_executor.execute(now, command)
        decisions, self.command_executor.decisions = self.command_executor.decisions, []
        if not decisions:
            return commands
        following = self.control_plane.learn(now, decisions)
        for command in following:
            self.command_executor.execute(now, command)
        return commands + following

    def _write_journal(self, now: float, commands: list[Command]) -> None:
        """Write the state of all members where something was announced, and a progress entry once a
        minute."""
        if any(isinstance(c, AnnounceFinding | ShowNote | EndJob) for c in commands):
            self.journal.write_view(self.clock.utc(now), self.job.status.view(now))
        elif now >= self.next_pulse:
            self.next_pulse = now + PULSE_INTERVAL_S
            self.journal.write_pulse(self.clock.utc(now), self.job.status.view(now))

    def _poll_interval(self, now: float) -> float:
        if self.shutdown.has_begun:
            return FAST_POLL_S
        if self.job.status.opened_at is None or self.job.status.watches_stall:
            return START_POLL_S
        if self.feed is not None and self.feed.awaits_stacks:
            return START_POLL_S
        return START_POLL_S if now - self.job.status.progress_at > NO_STEP_S else TRAINING_POLL_S

    def _on_interrupt(self, number: int) -> None:
        self.end.interrupt_signal = self.end.interrupt_signal or number
        self.events.append(AgentInterrupted(signal=number, interrupted_at=self.clock.monotonic()))
        self.wake.set()

    def _on_forward(self, number: int) -> None:
        self.events.append(SignalForwarded(signal=number, forwarded_at=self.clock.monotonic()))
        self.wake.set()
