"""The agent: one asyncio loop around the state of the job. It decides nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback

import msgspec

from allaboard.agent import sampler
from allaboard.agent.ending import Ending
from allaboard.agent.journal import Journal
from allaboard.agent.notes import SHOWN, Notes
from allaboard.agent.options import Options
from allaboard.agent.output import Terminal
from allaboard.agent.party import Party
from allaboard.agent.streams import Streams
from allaboard.agent.watch import Watch
from allaboard.agent.workers import Workers
from allaboard.catalogue import catalogue
from allaboard.clock import SystemClock
from allaboard.coordinator.events import (
    Announce,
    Answered,
    Command,
    Compare,
    End,
    Event,
    Interrupted,
    LetThrough,
    Locks,
    Look,
    Note,
    Overslept,
    Seen,
    Trace,
    TryLinks,
)
from allaboard.coordinator.state import Job, Settings
from allaboard.decide import Policy
from allaboard.facts import Finding, Outcome, Phase, Stage
from allaboard.hosts.fingerprint import fingerprint
from allaboard.hosts.locks import lock_waits
from allaboard.launch.local import Launch
from allaboard.report.assemble import assemble
from allaboard.report.stacks import verbose_lines
from allaboard.report.text import finding_lines, progress, summary_lines

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
QUICK, CALM = 0.05, 0.5
"""Seconds between two looks: while the job starts or ends, and while it trains."""
SLOW = 1.0
"""Seconds between two looks at what changes rarely."""
OVERSLEPT = 2.0
"""An agent that comes this many seconds late was not scheduled; its windows mean nothing."""
LEAVE = 1.0
"""Seconds that members at the gate get to read the verdict and leave by themselves."""
SERVERS = 5.0
"""Seconds between SIGTERM and SIGKILL for servers whose job is done."""
LEFTOVER = 2.0
"""Seconds between SIGTERM and SIGKILL for what the workers left behind."""
PULSE = 60.0
"""Seconds between two signs of life in the journal."""
READ = 2.0
"""Seconds for what is still being read of the script, where the job ended before it was told."""
DRAIN = 5.0
"""Seconds for the last lines, where something that was left behind holds a pipe."""


class Agent:
    """Watches one launched job to its end."""

    def __init__(self, launch: Launch, options: Options) -> None:
        plan = launch.plan
        self.launch = launch
        self.options = options
        self.clock = SystemClock()
        self.journal = Journal(plan.run_dir)
        self.terminal = Terminal()
        self.watch = Watch(launch.boxes)
        self.streams = Streams(launch.workers, plan.run_dir / "logs", self.terminal, plan.tasks)
        self.wake = asyncio.Event()
        self.workers = Workers(
            launch.reaper,
            self.streams,
            self.watch,
            self._say,
            self.wake.set,
            lambda worker, pid: self.journal.worker(worker, pid, launch.boxes),
        )
        self.ending = Ending(self.workers, options.grace, self._say)
        self.job = Job(_settings(launch, options), launch.at, catalogue().entries, self.clock.utc)
        self.let_through: dict[int, int] = {}
        self.verdict = 0
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.reading = Notes(options.subject, launch.at)
        self.read: tuple[Finding, ...] = ()
        self.next_slow = 0.0
        self.next_pulse = 0.0
        self.broken = False
        self.looking: asyncio.Task[None] | None = None
        self.party: Party | None = None
        self.answered: set[int] = set()
        if options.joined is not None and not options.observe:
            self.party = Party(
                options.joined,
                {**os.environ, **plan.extra},
                options.secret,
                options.coordinator,
                self.wake.set,
            )

    async def run(self) -> int:
        """The whole life of the job; returns the exit code."""
        loop = asyncio.get_running_loop()
        plan = self.launch.plan
        at = self.clock.utc(self.launch.at)
        command = tuple(plan.command)
        names = tuple(f"{job}-{index}" for job, index in plan.tasks)
        self.journal.start(at, plan.job, command, plan.size, self.options.wrapped, names)
        for log in self.streams.logs:
            log.trouble = self._say
        self.workers.listen(loop)
        self.streams.listen(loop)
        self.ending.listen(loop, self._interrupted)
        if self.party is not None:
            self.party.start()
        last = self.clock.monotonic()
        while True:
            now = self.clock.monotonic()
            if now - last > OVERSLEPT + CALM:
                self.events.append(Overslept(seconds=now - last))
            last = now
            self._careful_tick(now)
            if self.workers.over:
                return await self._finish()
            self.wake.clear()
            # Not wait_for: its task and its cancelling cost as much as a look at two workers.
            alarm = loop.call_later(self._pause(now), self.wake.set)
            await self.wake.wait()
            alarm.cancel()

    def _careful_tick(self, now: float) -> None:
        """A fault of ours must not end somebody's training: it is told once, and watching goes on."""
        try:
            self._tick(now)
        except Exception as error:
            if not self.broken:
                self.broken = True
                self.journal.event(self.clock.utc(now), traceback.format_exc())
                self._say(f"a fault of allaboard's own, training goes on: {error!r}")

    def _tick(self, now: float) -> None:
        events = self.events + self.workers.events
        self.events, self.workers.events = [], []
        slow = now >= self.next_slow
        if slow:
            self.next_slow = now + SLOW
            self.workers.count_ooms()
        awaited = self.job.rolled_at is None and self.launch.plan.size == 1
        events += self.watch.look(now, candidates=slow and awaited and not self.options.observe)
        for box in self.watch.boxes.values():
            box.beat(now, self.let_through.get(box.pid, 0), self.verdict)
        commands = self._decided(now, events)
        for command in commands:
            self._do(now, command)
        self._keep(now, commands)
        self._note(now, self.reading.take(now))
        if self.terminal.live:
            text = progress(self.job.view(now))
            self.terminal.status(f"{SPINNER[int(now * 8) % len(SPINNER)]} {text}" if text else "")

    def _keep(self, now: float, commands: list[Command]) -> None:
        """Leaves in the journal what someone needs who was not there."""
        if any(isinstance(c, Announce | Note | End) for c in commands):
            self.journal.view(self.clock.utc(now), self.job.view(now))
        elif now >= self.next_pulse:
            self.next_pulse = now + PULSE
            self.journal.pulse(self.clock.utc(now), self.job.view(now))

    def _decided(self, now: float, events: list[Event]) -> list[Command]:
        """What is to be done: by this host's coordinator, or by the one that it is linked to."""
        party = self.party
        if party is None:
            return self.job.handle(now, *events)
        events += self._answers(events)
        elsewhere = party.observe(now, events)
        self.job.quiet = party.linked
        return party.route(now, self.job.handle(now, *events, *elsewhere))

    def _answers(self, events: list[Event]) -> list[Event]:
        """What a member runs with, once it stands at the door."""
        found: list[Event] = []
        if self.party is not None and not self.party.facts:
            return found  # what is known of this host belongs to it
        for event in events:
            if not isinstance(event, Seen) or event.box is None or event.pid in self.answered:
                continue
            box = self.watch.boxes.get(event.pid)
            if event.box.phase >= Phase.ARRIVED and box is not None:
                self.answered.add(event.pid)
                facts = fingerprint(event.pid, box.identity.argv, event.box.notes)
                facts |= self.party.facts if self.party is not None else {}
                found.append(Answered(pid=event.pid, facts=facts))
        return found

    def _pause(self, now: float) -> float:
        if self.job.rolled_at is None or self.ending.begun:
            return QUICK
        return CALM / 2 if now - self.job.progress_at > 1.0 else CALM

    def _do(self, now: float, command: Command) -> None:
        match command:
            case LetThrough():
                self.job.boarded(now)
                self.let_through[command.pid] = command.round
                box = self.watch.boxes.get(command.pid)
                if box is not None:
                    box.beat(now, command.round)
            case Note():
                self.launch.release_ports()
                self._say(command.text)
            case Announce():
                self._announce(command.finding)
            case Look():
                if self.looking is None or self.looking.done():
                    self.looking = asyncio.ensure_future(self._look(command.pids))
            case Compare():
                self._compare(command)
            case End():
                if self.options.strict or self.options.secret or not self.job.quiet:
                    self._end(now, command)
            case TryLinks():
                pass  # the party's

    def _announce(self, finding: Finding) -> None:
        self.journal.finding(finding)
        if self.job.quiet:  # it was made elsewhere
            self.job.ledger.told(finding)
        colour = self.terminal.live and "NO_COLOR" not in os.environ
        for line in finding_lines(finding, colour, self.options.verbose):
            self.terminal.say(line)
        if self.options.verbose and finding.stage is Stage.RUNTIME:
            for line in verbose_lines(self.job.view(self.clock.monotonic())):
                self.terminal.say(line)

    def _note(self, now: float, found: list[Finding]) -> None:
        """Tells what the text of the script or the environment lets expect."""
        stamped = [msgspec.structs.replace(f, at=self.clock.utc(now)) for f in found]
        self.read += tuple(stamped)
        for finding in stamped[:SHOWN]:
            self._announce(finding)
        for finding in stamped[SHOWN:]:
            self.journal.finding(finding)
        if len(stamped) > SHOWN:
            script = self.options.subject.script
            more = len(stamped) - SHOWN
            self._say(f"{more} more notes on the text: allaboard check {script}".rstrip())

    async def _look(self, pids: tuple[int, ...]) -> None:
        now = self.clock.monotonic
        self.events += await asyncio.gather(
            *(sampler.look(p, self.watch.boxes.get(p), now()) for p in pids)
        )
        self.events.append(Locks(waits=lock_waits()))

    def _compare(self, command: Compare) -> None:
        for pid in command.pids:
            box = self.watch.boxes.get(pid)
            traced = box.calls.trace(command.group, command.round) if box is not None else None
            if traced is not None:
                self.events.append(Trace(pid=pid, traced=traced))
        self.wake.set()

    def _end(self, now: float, command: End) -> None:
        self._say(command.reason)
        self.job.ending = self.job.ending or command
        self.verdict = 1
        for box in self.watch.boxes.values():
            box.say(f"allaboard: {command.reason}")
            box.beat(now, self.let_through.get(box.pid, 0), self.verdict)
        patience = LEAVE if command.outcome is Outcome.ROLL_CALL_FAILED else 0.0
        if command.outcome is Outcome.COMPLETED:  # servers have nothing to write down
            self.ending.grace = min(self.ending.grace, SERVERS)
        self.ending.begin(patience, signal.SIGTERM, group=False)

    def _interrupted(self, number: int) -> None:
        self.events.append(Interrupted(signal=number))
        self.wake.set()

    def _say(self, text: str) -> None:
        self.notes.append(text)
        self.journal.event(self.clock.utc(self.clock.monotonic()), text)
        self.terminal.say(f"allaboard: {text}")

    async def _finish(self) -> int:
        """Ends what the workers left behind, reads their last lines, and writes the report."""
        self.ending.cancel()
        self.job.quiet = False
        if self.looking is not None:
            self.looking.cancel()
        self.workers.end(LEFTOVER)
        await self.streams.drain(DRAIN)
        if self.party is not None:
            self.party.close()
        now = self.clock.monotonic()
        for command in self.job.handle(now):
            if isinstance(command, Announce):
                self._announce(command.finding)
        self.journal.view(self.clock.utc(now), self.job.view(now))
        self._note(now, self.reading.last(READ))
        if self.reading.trouble:
            self.journal.event(self.clock.utc(now), self.reading.trouble)
        outcome, reason = self.job.outcome()
        if self.workers.failed_to_start and outcome is Outcome.COMPLETED:
            outcome, reason = Outcome.FAILED, "a worker could not be started"
        plan = self.launch.plan
        findings = self.job.ledger.findings + self.read
        report = assemble(
            job=plan.job,
            command=tuple(plan.command),
            outcome=outcome,
            reason=reason,
            code=self.options.code(outcome, findings, self.job.interrupted),
            started=self.clock.utc(self.launch.at),
            seconds=now - self.launch.at,
            run_dir=str(plan.run_dir),
            view=self.job.view(now),
            findings=findings,
            notes=tuple(self.notes),
        )
        self.journal.report(report, self.options.report)
        for line in summary_lines(report):
            self.terminal.say(f"allaboard: {line}")
        if self.journal.trouble:
            self.terminal.say(f"allaboard: not all of the run folder: {self.journal.trouble}")
        self.terminal.close()
        self.journal.close()
        self.launch.clean()
        return report.exit_code


def _settings(launch: Launch, options: Options) -> Settings:
    return Settings(
        launched=launch.plan.size,
        host=os.uname().nodename,
        tasks=launch.plan.tasks,
        wrapped=options.wrapped,
        joined=options.joined is not None,
        rank=options.joined.rank if options.joined is not None else -1,
        timeout=options.timeout,
        timeout_hard=options.timeout_hard,
        policy=Policy(
            observe=options.observe,
            stop_on_hang=options.stop_on_hang,
            hang_after=options.hang_after,
            stop_on_error=options.stop_on_error,
            ends_survivors=not options.wrapped and options.joined is None,
            only_reports=options.joined is not None and not options.strict,
        ),
    )


def run(launch: Launch, options: Options) -> int:
    """Watches what was launched until it has ended; returns the exit code of allaboard."""

    async def main() -> int:
        return await Agent(launch, options).run()

    return asyncio.run(main())
