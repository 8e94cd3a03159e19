"""One launch of the workers, watched from their start to their end."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from pathlib import Path

from allaboard.agent.announcer import Announcer
from allaboard.agent.arrival_fifo import ArrivalFifo
from allaboard.agent.background_check import FindingSource
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
from allaboard.launch.local_workers import Launch, working_folder
from allaboard.policy.restart.attempt_summary import summarize_round
from allaboard.protocol.commands import AnnounceFinding, Command, ConcludeRound, EndJob, ShowNote
from allaboard.protocol.events import AgentInterrupted, AgentOverslept, CoordinatorChanged, Event
from allaboard.protocol.job_state_port import JobStatePort
from allaboard.rules.engine.catalogue import load_job_rules

SPINNER_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
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
RARE_POLL_S = 1.0
"""Seconds between two looks at things that change rarely (control groups, new child processes)."""
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
    ) -> None:
        plan = launch.plan
        self.launch = launch
        self.options = options
        self.announcer = announcer
        self.clock = announcer.clock
        self.journal = announcer.journal
        self.background_check = background_check
        self.wake = asyncio.Event()
        self.process_watcher = ProcessWatcher(
            launch.boxes,
            (plan.run_dir, Path(working_folder())),
            wrapped=options.wrapped,
            was_oom_killed=lambda worker: self.workers.was_oom_killed(worker),
            beside=options.joined.task_beside_cluster if options.joined is not None else "",
        )
        self.arrival_fifo = ArrivalFifo(launch.boxes, self.wake.set)
        self.traffic_sampler = TrafficSampler(self.clock.monotonic)
        self.port_conflicts = PortConflicts()
        # A launcher that starts one agent per rank: the output of the only worker is labelled with that rank.
        joined = options.joined if not options.wrapped else None
        rank = max(joined.rank, 0) if joined is not None else 0
        logs = plan.run_dir / "logs"
        self.worker_output = WorkerOutput(
            launch.workers, logs, announcer.terminal, announcer.write_line, plan.tasks, rank
        )
        self.workers = WorkerProcesses(
            launch.reaper,
            self.worker_output,
            self.process_watcher,
            announcer.write_line,
            self.wake.set,
            lambda worker, pid: self.journal.write_worker(worker, pid, launch.boxes),
        )
        self.shutdown = Shutdown(self.workers, options.grace, announcer.write_line)
        state = build_settings(launch, options, restarted)
        self.job: JobStatePort = JobState(
            state, launch.started_at, load_job_rules().entries, self.clock.utc
        )
        self.standby = StandbyProcess(launch, self.workers, options.restarts)
        self.snapshot_process = SnapshotProcess(launch, self.workers, announcer, self.wake.set)
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
            self.standby,
        )
        self.control_plane = ControlPlane(
            launch,
            options,
            self.job,
            self.process_watcher,
            self.wake.set,
            lambda: self.workers.all_exited,
        )
        self.events: list[Event] = []
        self.interrupt_signal = 0
        """Signal with which the user ended the job on this host, or 0."""
        self.glance_timer: asyncio.TimerHandle | None = None
        self.next_slow = 0.0
        self.next_pulse = 0.0
        self.has_faulted = False
        self.has_explained_waiting = False
        self.has_reported_sampling_error = False
        self.restarts_before = restarted

    async def run(self) -> None:
        """Watch the workers; return when all have ended and no other host needs this agent."""
        loop = asyncio.get_running_loop()
        if self.launch.plan.round:
            self.worker_output.write_marker(f"--- allaboard: round {self.launch.plan.round} ---")
        # Readers first, signal handlers last: a Ctrl-C in between still has Python's default effect.
        self.workers.start_listening(loop)
        self.arrival_fifo.start_listening(loop)
        loop.add_reader(self.process_watcher.exit_watcher.fileno(), self._on_process_ended)
        self.worker_output.start_reading(loop)
        self.shutdown.install_signal_handlers(loop, self._on_interrupt)
        self.control_plane.start()
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

    def _on_process_ended(self) -> None:
        """Note the exits of processes that another launcher started, before that launcher reaps them."""
        self.process_watcher.exit_watcher.collect_exits()
        self.wake.set()

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
        if self.interrupt_signal or self.job.status.ending is not None:
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
        loop = asyncio.get_running_loop()
        self.arrival_fifo.close(loop)
        loop.remove_reader(self.process_watcher.exit_watcher.fileno())
        self.process_watcher.exit_watcher.close()
        restart = self.control_plane.multi_host_restart
        # If another host decides for all, it has announced the findings already.
        is_local = restart is None or restart.leader_decision is None
        self.command_executor.cancel_sampling()
        self.standby.close()
        self.snapshot_process.close()
        keep_sessions = self.launch.reaper_pid > 0 and self._ended_well()
        self.workers.end_all(LEFTOVER_GRACE_S, keep_sessions)
        await self.worker_output.drain_pipes(DRAIN_TIMEOUT_S)
        await self.command_executor.wait_for_sampling()
        if keep_sessions:
            await self._report_left_running()
        if restart is None:
            self.control_plane.close()
        now = self.clock.monotonic()
        commands: list[Command] = []
        if self.job.status.leader_decides == is_local:
            commands += self.job.handle(now, CoordinatorChanged(is_local=is_local))
        commands += self.job.handle(now)
        for command in self.control_plane.share_last_findings(now, commands):
            if isinstance(command, AnnounceFinding):
                self.command_executor.announce_finding(now, command.finding)
        self.journal.write_view(self.clock.utc(now), self.job.status.view(now))

    def _ended_well(self) -> bool:
        """Return True if all workers ended by themselves; only then may processes that they detached go
        on."""
        if (
            self.interrupt_signal
            or self.workers.failed_to_start
            or self.job.status.ending is not None
        ):
            return False
        is_completed_elsewhere = (
            self.leader_decision is None or self.leader_decision.report.outcome is Outcome.COMPLETED
        )
        return is_completed_elsewhere and self.job.status.outcome[0] is Outcome.COMPLETED

    async def _report_left_running(self) -> None:
        """Print which detached processes go on. Wait for the reaper's list, but no longer than
        `DRAIN_TIMEOUT_S`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.workers.all_ended.wait(), DRAIN_TIMEOUT_S)
        for pid in self.workers.left_running[:MAX_SHOWN_PROCESSES]:
            command = " ".join(proc.command_line(pid))[:MAX_COMMAND_CHARS]
            text = f"left running because it has its own session and streams: pid {pid} ({command})"
            self.announcer.write_line(text)

    @property
    def leader_decision(self) -> ConcludeRound | None:
        """Conclusion of this round by the host that decides for all; None if this host decides."""
        restart = self.control_plane.multi_host_restart
        if restart is None or self.interrupt_signal:
            return None
        return restart.leader_decision

    @property
    def ending_signal(self) -> int:
        """Signal with which the user ended the job, on this host or another one; 0 if nobody did."""
        interruption = self.remote_interruption
        return self.interrupt_signal if interruption is None else interruption.signal

    @property
    def remote_interruption(self) -> Interruption | None:
        """The interruption on another host that ended the job here, or None."""
        return None if self.interrupt_signal else self.job.status.interruption_behind_end

    @property
    def restart_hindrance(self) -> str:
        """Why a host cannot take part in a further round; "" if nothing prevents it."""
        restart = self.control_plane.multi_host_restart
        return restart.restart_hindrance() if restart is not None else ""

    @property
    def is_orphaned(self) -> bool:
        """True if the host that decides for all was lost before it reported how the job ended."""
        return (
            self.control_plane.multi_host_restart is not None
            and self.control_plane.multi_host_restart.is_orphaned
        )

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
        while not self.interrupt_signal and (remaining_s := deadline - self.clock.monotonic()) > 0:
            self.wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), remaining_s)
        return self.interrupt_signal != 0

    def summarize_end(self) -> RoundEnd:
        """Return how this round ended. To be called after `close`."""
        outcome, reason = self.job.status.outcome
        if self.interrupt_signal:
            outcome, reason = Outcome.INTERRUPTED, "interrupted"
        elif self.workers.failed_to_start and outcome is not Outcome.INTERRUPTED:
            outcome, reason = Outcome.FAILED, "a worker could not be started"
        view = self.job.status.view(self.clock.monotonic())
        codes = tuple(dict.fromkeys(f.rule for f in self.job.status.findings))
        ending = self.job.status.ending
        final = ending is not None and ending.final
        return summarize_round(self.launch.plan.round, view, outcome, reason, codes, final)

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

    def _tick(self, now: float) -> None:
        sources = (self, self.workers, self.command_executor, self.snapshot_process)
        events = [e for source in sources for e in source.events]
        for source in sources:
            source.events.clear()
        is_rare_tick = now >= self.next_slow
        if is_rare_tick:
            self.next_slow = now + RARE_POLL_S
            self.workers.watch_oom_counters()
        # An attached process is no child of ours; its only Python child that we know is this agent itself.
        may_be_child = self.job.status.opened_at is None and self.launch.plan.size == 1
        may_be_child = may_be_child and not self.options.attached
        events += self.process_watcher.sample_processes(
            now, candidates=is_rare_tick and may_be_child and not self.options.observe
        )
        # These two read the samples of this tick, so they come after them.
        events += self.traffic_sampler.collect_samples(now, events)
        events += self.port_conflicts.find_holders(now, events)
        if self.traffic_sampler.sampling_error and not self.has_reported_sampling_error:
            self.has_reported_sampling_error = True
            self.announcer.write_line(self.traffic_sampler.sampling_error)
        if self.job.status.opened_at is not None:
            events += self.process_watcher.measure_usage(now)
        # Before the decisions: members at the gate judge by the heartbeat whether their agent is alive.
        self.command_executor.write_heartbeats(now)
        commands = self._carry_out(now, self.control_plane.decide_commands(now, events))
        if self.shutdown.has_begun:
            self.command_executor.cancel_restarts()
        elif self.launch.plan.tasks_may_return:
            used = self.restarts_before + len(self.job.status.task_returns)
            view = self.job.status.view(now)
            self.standby.start_if_due(view, used)
            self.snapshot_process.start_if_due(view)
        self._write_journal(now, commands)
        rolled_at = self.job.status.opened_at
        self.announcer.announce_script_findings(
            now,
            self.background_check.take_findings(
                now, rolled_at is None or now < rolled_at + QUIET_AFTER_START_S
            ),
        )
        if self.announcer.terminal.is_tty:
            text = (
                progress_line(self.job.status.recent_view(now))
                if not self.job.status.leader_decides
                else self._follower_status()
            )
            spinner = SPINNER_FRAMES[int(now * 8) % len(SPINNER_FRAMES)]
            self.announcer.terminal.show_status(f"{spinner} {text}" if text else "")

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

    def _follower_status(self) -> str:
        """The status line of a host whose members are counted by another host."""
        return self.command_executor.waiting_note if self.job.status.opened_at is None else ""

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
        return START_POLL_S if now - self.job.status.progress_at > NO_STEP_S else TRAINING_POLL_S

    def _on_interrupt(self, number: int) -> None:
        self.interrupt_signal = self.interrupt_signal or number
        self.events.append(AgentInterrupted(signal=number, interrupted_at=self.clock.monotonic()))
        self.wake.set()
