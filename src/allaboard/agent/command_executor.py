"""Carries out what the state of the job commands, one method a command."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from allaboard.agent.announcement_policy import AnnouncementPolicy
from allaboard.agent.announcer import Announcer
from allaboard.agent.end_authorization import may_end
from allaboard.agent.options import Options
from allaboard.agent.process_watcher import ProcessWatcher
from allaboard.agent.shutdown import Shutdown
from allaboard.agent.standby_process import StandbyProcess
from allaboard.agent.worker_output import WorkerOutput
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.facts import ASKING, Finding, Interruption, Outcome, Phase
from allaboard.hosts.file_locks import lock_waits
from allaboard.launch.local_workers import Launch, WorkerStartError
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    EndJob,
    KillForReplacement,
    OpenGate,
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
from allaboard.sampling import stack_sampler
from allaboard.sampling.flight_recorder_client import Recorders
from allaboard.sampling.gil_sampler import Grips
from allaboard.sampling.sampling_task import Looking

GATE_EXIT_GRACE_S = 1.0
"""Seconds that members at the gate get to read the verdict and leave by themselves."""
STANDBY_POLL_S = 0.05
"""Seconds between two looks whether the process that waits has imported what it imports."""
SERVER_GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL for servers whose job is done."""


class CommandExecutor:
    """``events`` collects what was learned on the way, until it is taken; ``wake`` is called when
    there is something new."""

    def __init__(
        self,
        launch: Launch,
        options: Options,
        job: JobStatePort,
        watch: ProcessWatcher,
        ending: Shutdown,
        workers: WorkerProcesses,
        streams: WorkerOutput,
        voice: Announcer,
        wake: Callable[[], None],
        reserve: StandbyProcess,
    ) -> None:
        self._launch = launch
        self._options = options
        self._job = job
        self._watch = watch
        self._ending = ending
        self._workers = workers
        self._streams = streams
        self._voice = voice
        self._wake = wake
        self._reserve = reserve
        self._aloud = AnnouncementPolicy(options, os.environ)
        self._let_through: dict[int, int] = {}
        self._verdict = 0
        self._coming: dict[int, asyncio.TimerHandle] = {}
        self._looking = Looking()
        self._grips = Grips(stack_sampler.spy_threads)
        self._recorders = Recorders()
        self.events: list[Event] = []
        self.decisions: list[Event] = []
        """What was carried out here that this host's own state did not decide, until it is told of it."""
        self._fault = ""
        """The first fault of our own in a look, as it was noted."""
        self.waiting_note = ""
        """Whom all wait for, as it was last told."""

    def write_heartbeats(self, now: float) -> None:
        """Tells every member that it is watched, and what was decided of it."""
        for box in self._watch.boxes.values():
            box.beat(now, self._let_through.get(box.pid, 0), self._verdict)

    def execute(self, now: float, command: Command) -> None:
        match command:
            case OpenGate():
                if not command.beside:
                    self._gate_opened(now)
                self._let_through[command.pid] = command.round
                box = self._watch.boxes.get(command.pid)
                if box is not None:
                    box.beat(now, command.round)
            case ShowNote() if command.waits:
                self.waiting_note = command.text
                # Where there is a line for it, that is enough.
                aloud = self._aloud.shows_notes(self._job.status.leader_decides)
                self._voice.write_line(command.text, aloud and not self._voice.terminal.is_tty)
            case ShowNote():
                self._launch.release_ports()
                self._voice.write_line(
                    command.text, self._aloud.shows_notes(self._job.status.leader_decides)
                )
            case AnnounceFinding():
                self.announce_finding(now, command.finding)
            case SampleStacks():
                if not self._looking.under_way:
                    self._looking.begin(self._look(command.pids))
            case TraceCalls():
                self._compare(command)
            case EndJob():
                if not self._job.status.leader_decides or may_end(
                    command, self._options, self._job.status.view(now)
                ):
                    self._end(now, command)
            case ReportInterruption():
                self._halted(now, command)
            case KillForReplacement():
                self._voice.write_line(f"{command.text}; it is ended, to be replaced")
                self._workers.kill_process(command.pid)
            case RestartWorker():
                self._replace(command)
            case ProbeLinks():
                pass  # the party's

    def _halted(self, now: float, command: ReportInterruption) -> None:
        """Where this one is interrupted too, that is all that there is to say."""
        if not self._job.status.interrupted_by:
            if command.signal not in ASKING:
                return
            interruption = Interruption(
                host=command.host, signal=command.signal, at=now, who=command.who
            )
            self.decisions.append(InterruptionReported(interruption=interruption))
            self._voice.write_line(str(interruption))

    def _gate_opened(self, now: float) -> None:
        """The leader opened the gate of one of our members: this host's own state has not."""
        if self._job.status.opened_at is None:
            self.decisions.append(GateOpened(at=now))

    def announce_finding(self, now: float, finding: Finding) -> None:
        """Tells a finding, made here or elsewhere."""
        if self._options.attached and self._verdict:
            return  # what it raises has been told; who catches it goes on without us
        quiet = self._job.status.leader_decides
        if quiet:
            self.decisions.append(FindingReported(finding=finding))
        self._voice.announce_finding(
            finding, self._job.status.view(now), self._aloud.shows_finding(finding, quiet)
        )

    def _replace(self, command: RestartWorker) -> None:
        worker = command.worker
        wait = f" in {command.delay:g} s" if command.delay else ""
        # On several hosts its number here says nothing; the reason names it.
        who = f"{self._launch.name(worker)} " if self._launch.plan.tasks else ""
        self._voice.write_line(f"{who}starts again{wait}: {command.reason}")
        self._workers.expect_restart(worker)
        loop = asyncio.get_running_loop()
        self._coming[worker] = loop.call_later(command.delay, self._respawn, loop, worker)

    def _respawn(self, loop: asyncio.AbstractEventLoop, worker: int) -> None:
        del self._coming[worker]
        now = self._voice.clock.monotonic()
        ready = self._reserve.hand_over(worker, now)
        if ready is None and self._reserve.is_worth_waiting_for(worker, now):
            self._coming[worker] = loop.call_later(STANDBY_POLL_S, self._respawn, loop, worker)
            return
        try:
            self._streams.attach_restarted(loop, ready or self._launch.respawn(worker))
        except WorkerStartError as error:
            self._workers.give_up(worker)
            self._voice.write_line(f"{self._launch.name(worker)} cannot be started again: {error}")
            self._wake()

    def cancel_restarts(self) -> None:
        """The job ends: who was to come again does not."""
        for worker, timer in self._coming.items():
            timer.cancel()
            self._workers.give_up(worker)
        self._coming.clear()

    def cancel_sampling(self) -> None:
        """Looks no more."""
        self._looking.cancel()

    async def wait_for_sampling(self) -> None:
        """Comes back when the look that was cancelled has ended its processes."""
        await self._looking.over()

    async def _look(self, pids: tuple[int, ...]) -> None:
        now = self._voice.clock.monotonic
        looked = await asyncio.gather(
            *(
                stack_sampler.look(p, self._watch.boxes.get(p), now(), self._grips, self._recorders)
                for p in pids
            ),
            return_exceptions=True,
        )
        # Only now: while it was waited for, what there was has been taken.
        self.events += [one for one in looked if isinstance(one, StackSampled)]
        for fault in looked:
            if isinstance(fault, Exception) and not self._fault:
                self._fault = f"a look at a stack failed: {fault!r}"
                self._voice.journal.write_event(self._voice.clock.utc(now()), self._fault)
        ours = self._watch.boxes
        self.events.append(
            LockWaitsSampled(waits=tuple(w for w in lock_waits() if w.waiter in ours))
        )

    def _at_gate(self) -> bool:
        boxes = self._watch.boxes.values()
        return any(box.read().phase == Phase.ARRIVED for box in boxes)

    def _compare(self, command: TraceCalls) -> None:
        for pid in command.pids:
            box = self._watch.boxes.get(pid)
            traced = (
                box.calls.trace(command.group, command.round)
                if box is not None and box.whole
                else None
            )
            if traced is not None:
                self.events.append(CallsTraced(pid=pid, traced=traced))
        self._wake()

    def _end(self, now: float, command: EndJob) -> None:
        # At the gate it becomes an exception, which says it.
        raised = self._options.attached and self._at_gate()
        self._voice.write_line(command.reason, aloud=not raised)
        if self._job.status.ending is None:
            self.decisions.append(
                JobEndOrdered(outcome=command.outcome, reason=command.reason, final=command.final)
            )
        self._verdict = 1
        for box in self._watch.boxes.values():
            box.say(f"allaboard: {command.reason}")
        self.write_heartbeats(now)
        patience = GATE_EXIT_GRACE_S if command.outcome is Outcome.ROLL_CALL_FAILED else 0.0
        if command.outcome is Outcome.COMPLETED:  # servers have nothing to write down
            self._ending.grace = min(self._ending.grace, SERVER_GRACE_S)
        self._ending.begin_shutdown(patience, signal.SIGTERM, group=False)
