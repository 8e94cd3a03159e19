"""Carries out the commands of the job state, one method per command."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Protocol

from allaboard.agent.announcement_policy import AnnouncementPolicy
from allaboard.agent.announcer import Announcer
from allaboard.agent.end_authorization import may_end
from allaboard.agent.observation.process_watcher import BlackBoxes
from allaboard.agent.options import Options
from allaboard.agent.worker_restarts import (
    PipeReader,
    RestartableWorkers,
    StandbySource,
    WorkerRestarts,
)
from allaboard.facts import ASKING, Finding, Interruption, Outcome, Phase
from allaboard.hosts.file_locks import lock_waits
from allaboard.launch.local_workers import Launch
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    DropAgent,
    EndJob,
    KillForReplacement,
    OpenGate,
    OpenHeldGates,
    ProbeLinks,
    ReportInterruption,
    RestartWorker,
    SampleStacks,
    ShowNote,
    TraceCalls,
)
from allaboard.protocol.events import (
    CallsTraced,
    Event,
    FindingReported,
    GateOpened,
    InterruptionReported,
    JobEndOrdered,
    LockWaitsSampled,
    StackSampled,
)
from allaboard.protocol.job_state_port import JobStatePort
from allaboard.report.plain_text import clean
from allaboard.sampling import pyspy, stack_sampler
from allaboard.sampling.flight_recorder_client import FlightRecorderClient
from allaboard.sampling.gil_sampler import GilSampler
from allaboard.sampling.loader_sampler import LoaderSampler
from allaboard.sampling.sampling_task import SamplingTask

GATE_EXIT_GRACE_S = 1.0
"""Seconds that members at the gate get to read the verdict and exit by themselves before SIGTERM."""
SERVER_GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL for parameter servers whose job is done."""


class JobEnder(Protocol):
    """The part of `shutdown.Shutdown` that the executor uses."""

    def shorten_grace(self, seconds: float) -> None:
        """Wait no longer than ``seconds`` before SIGKILL."""

    def begin_shutdown(self, delay_s: float, number: int, group: bool) -> None:
        """Send the signal after ``delay_s`` seconds, and SIGKILL after the grace."""


class CommandExecutor:
    """Executes commands on the workers of this host; ``wake`` is called when a result has arrived."""

    def __init__(
        self,
        launch: Launch,
        options: Options,
        job: JobStatePort,
        watcher: BlackBoxes,
        shutdown: JobEnder,
        workers: RestartableWorkers,
        output: PipeReader,
        announcer: Announcer,
        wake: Callable[[], None],
        standby: StandbySource,
    ) -> None:
        self._launch = launch
        self._options = options
        self._job = job
        self._watcher = watcher
        self._shutdown = shutdown
        self._workers = workers
        self._announcer = announcer
        self._wake = wake
        self._policy = AnnouncementPolicy(options, os.environ)
        self._gate_rounds: dict[int, int] = {}
        self._verdict = 0
        self.restarts = WorkerRestarts(launch, workers, output, standby, announcer, wake)
        self._sampling = SamplingTask()
        self._grips = GilSampler(pyspy.spy_threads)
        self._loaders = LoaderSampler(pyspy.spy_with_source)
        self._recorders = FlightRecorderClient()
        self.events: list[Event] = []
        """Results for the job state, until the loop takes them."""
        self.decisions: list[Event] = []
        """What was carried out here that this host's own state did not decide, until it is told of it."""
        self._first_fault = ""
        """The first internal error while sampling stacks, as it stands in the journal; "" if there was
        none."""
        self.waiting_note = ""
        """The newest note about the members that all wait for."""

    def write_heartbeats(self, now: float) -> None:
        """Write the time, the open gate and the verdict into every black box: members see that they are
        watched."""
        for box in self._watcher.boxes.values():
            box.write_heartbeat(now, self._gate_rounds.get(box.pid, 0), self._verdict)

    def execute(self, now: float, command: Command) -> None:
        """Carry out one command; ``now`` is in seconds (CLOCK_MONOTONIC)."""
        match command:
            case OpenGate():
                if not command.is_rpc_only:
                    self._gate_opened(now)
                # Kept, not only written: the member may attach its box after this, or be at the gate of a
                # later init.
                self._gate_rounds[command.pid] = command.round
                box = self._watcher.boxes.get(command.pid)
                if box is not None:
                    box.write_heartbeat(now, command.round)
            case ShowNote() if command.is_waiting_line:
                self.waiting_note = clean(command.text)
                # A terminal has a status line that shows it already.
                to_terminal = self._policy.shows_notes(self._job.status.leader_decides)
                self._announcer.write_line(
                    command.text, to_terminal and not self._announcer.terminal.is_tty
                )
            case ShowNote():
                self._launch.release_ports()
                self._announcer.write_line(
                    command.text, self._policy.shows_notes(self._job.status.leader_decides)
                )
            case AnnounceFinding():
                self.announce_finding(now, command.finding)
            case SampleStacks():
                # One sampling at a time: each one stops the processes for a moment, and a job that stalls
                # asks again anyway.
                if not self._sampling.is_running and (pids := self._own_pids(now, command.pids)):
                    self._sampling.begin(
                        self._look_at_stacks(pids) if command.is_look else self._sample_stacks(pids)
                    )
            case TraceCalls():
                self._trace_calls(command)
            case EndJob():
                is_own = not command.is_from_leader and not self._job.status.leader_decides
                if is_own or may_end(command, self._options, self._job.status.view(now)):
                    self._end_job(now, command)
            case ReportInterruption():
                self._report_interruption(now, command)
            case KillForReplacement():
                self._announcer.write_line(
                    f"{command.reason}; ending it so that it can be replaced"
                )
                self._workers.kill_process(command.pid)
            case RestartWorker():
                self.restarts.schedule(command)
            case OpenHeldGates():
                self.open_held_gates(now, command.reason)
            case ProbeLinks() | DropAgent():
                pass  # done by the membership

    def open_held_gates(self, now: float, reason: str) -> None:
        """Let every member go on that is held at the gate of this host."""
        held_workers = {
            pid: reading.round
            for pid, box in self._watcher.boxes.items()
            if (reading := box.read_snapshot()).phase == Phase.ARRIVED
            and self._gate_rounds.get(pid) != reading.round
        }
        if not held_workers:
            return
        self._launch.release_ports()
        self._gate_rounds |= held_workers
        self._gate_opened(now)
        self.write_heartbeats(now)
        self._announcer.write_line(f"training starts without a complete roll call: {reason}")

    def _report_interruption(self, now: float, command: ReportInterruption) -> None:
        """Report an interruption on another host, unless the user has interrupted this one, too."""
        if not self._job.status.interrupted_by:
            if command.signal not in ASKING:
                return
            interruption = Interruption(
                host=command.host, signal=command.signal, interrupted_at=now, who=command.members
            )
            self.decisions.append(InterruptionReported(interruption=interruption))
            self._announcer.write_line(str(interruption))

    def _gate_opened(self, now: float) -> None:
        """The leader opened the gate of one of our members: this host's own state has not."""
        if self._job.status.opened_at is None:
            self.decisions.append(GateOpened(opened_at=now))

    def announce_finding(self, now: float, finding: Finding) -> None:
        """Announce a finding, made here or on another host."""
        if self._options.attached and self._verdict:
            return  # the exception in the script has shown it; a script that catches it goes on without us
        quiet = self._job.status.leader_decides
        if quiet:
            self.decisions.append(FindingReported(finding=finding))
        self._announcer.announce_finding(
            finding, self._job.status.view(now), self._policy.shows_finding(finding, quiet)
        )

    def cancel_sampling(self) -> None:
        """Stop sampling stacks."""
        self._sampling.cancel()

    async def wait_for_sampling(self) -> None:
        """Return when the cancelled sampling has ended its helper processes."""
        await self._sampling.wait_ended()

    async def _sample_stacks(self, pids: tuple[int, ...]) -> None:
        now = self._announcer.clock.monotonic
        results = await asyncio.gather(
            *(
                stack_sampler.sample_stack(
                    p,
                    self._watcher.boxes.get(p),
                    now(),
                    self._grips,
                    self._recorders,
                    self._loaders,
                )
                for p in pids
            ),
            return_exceptions=True,
        )
        # Appended only now: the loop may have taken and cleared the list while this waited.
        self.events += [result for result in results if isinstance(result, StackSampled)]
        for fault in results:
            if isinstance(fault, Exception) and not self._first_fault:
                self._first_fault = f"sampling a stack failed: {fault!r}"
                self._announcer.journal.write_event(
                    self._announcer.clock.utc(now()), self._first_fault
                )
        boxes = self._watcher.boxes
        self.events.append(
            LockWaitsSampled(
                waits=tuple(w for w in lock_waits(members=list(boxes)) if w.waiter in boxes)
            )
        )

    async def _look_at_stacks(self, pids: tuple[int, ...]) -> None:
        """Read where processes are that train, without a signal to them."""
        now = self._announcer.clock.monotonic
        # One by one: each reader takes a core for some hundredths of a second, which the training needs.
        for pid in pids:
            frames, _ = await pyspy.spy_with_source(pid)
            if frames:
                self.events.append(
                    StackSampled(
                        pid=pid, sampled_at=now(), frames=frames, by="py-spy", is_look=True
                    )
                )
        self._wake()

    def _own_pids(self, now: float, pids: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of these processes that are members on this host: another host, which may have
        hung up by now, may ask for no other."""
        members = {m.event_key for m in self._job.status.view(now).members}
        return tuple(pid for pid in pids if pid in members)

    def is_anyone_at_gate(self) -> bool:
        """Return True if a member of this host is held at the gate."""
        return any(box.phase == Phase.ARRIVED for box in self._watcher.boxes.values())

    def _trace_calls(self, command: TraceCalls) -> None:
        for pid in command.pids:
            box = self._watcher.boxes.get(pid)
            traced = box.trace_calls(command.group, command.round) if box is not None else None
            if traced is not None:
                self.events.append(CallsTraced(pid=pid, traced=traced))
        self._wake()

    def _end_job(self, now: float, command: EndJob) -> None:
        # A script that waits at the gate gets an exception with this reason: printing it as well would repeat
        # it.
        is_raised_at_gate = self._options.attached and self.is_anyone_at_gate()
        self._announcer.write_line(command.reason, to_terminal=not is_raised_at_gate)
        if self._job.status.ending is None:
            self.decisions.append(
                JobEndOrdered(outcome=command.outcome, reason=command.reason, final=command.final)
            )
        self._verdict = 1
        # The reason is written before the verdict: a member that sees the verdict raises with this text at
        # once.
        for box in self._watcher.boxes.values():
            box.write_verdict(f"allaboard: {clean(command.reason)}")
        self.write_heartbeats(now)
        # A member at the gate raises RollCallError and exits by itself, with a traceback that says why.
        delay_s = GATE_EXIT_GRACE_S if command.outcome is Outcome.ROLL_CALL_FAILED else 0.0
        if command.outcome is Outcome.COMPLETED:  # servers have nothing to write down
            self._shutdown.shorten_grace(SERVER_GRACE_S)
        self._shutdown.begin_shutdown(delay_s, signal.SIGTERM, group=False)
