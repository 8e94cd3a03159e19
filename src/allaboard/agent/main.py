"""The agent: one asyncio loop around the state of the job. It decides nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import traceback
from pathlib import Path

from allaboard.agent import sampler
from allaboard.agent.journal import Journal
from allaboard.agent.options import Options
from allaboard.agent.output import Terminal, WorkerLog
from allaboard.agent.watch import Watch
from allaboard.catalogue import catalogue
from allaboard.clock import SystemClock
from allaboard.coordinator.events import (
    Announce,
    Command,
    End,
    Event,
    Exited,
    Interrupted,
    Launched,
    LetThrough,
    Locks,
    Look,
    Note,
    Overslept,
)
from allaboard.coordinator.state import Job, Settings
from allaboard.decide import Policy
from allaboard.facts import Finding, Outcome
from allaboard.hosts import oom
from allaboard.hosts.locks import lock_waits
from allaboard.launch.local import Launch
from allaboard.report.assemble import assemble, exit_code
from allaboard.report.text import finding_lines, progress, summary_lines

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
QUICK, CALM = 0.05, 0.5
"""Seconds between two looks: while the job starts or stands still, and while it trains."""
CROWDED = 0.05
"""Seconds that a worker's output waits where neither file nor terminal takes it."""
SLOW = 1.0
"""Seconds between two looks at what changes rarely."""
OVERSLEPT = 2.0
"""An agent that comes this many seconds late was not scheduled; its windows mean nothing."""
LEAVE = 1.0
"""Seconds that members at the gate get to read the verdict and leave by themselves."""
LEFTOVER = 2.0
"""Seconds between SIGTERM and SIGKILL for what the workers left behind."""


class Agent:
    """Watches one launched job to its end."""

    def __init__(self, launch: Launch, options: Options) -> None:
        self.launch = launch
        self.options = options
        self.clock = SystemClock()
        plan = launch.plan
        self.journal = Journal(plan.run_dir)
        self.terminal = Terminal()
        self.watch = Watch(launch.boxes)
        self.host = os.uname().nodename
        self.job = Job(
            Settings(
                launched=plan.size,
                host=self.host,
                wrapped=options.wrapped,
                timeout=options.timeout,
                timeout_hard=options.timeout_hard,
                policy=Policy(
                    observe=options.observe,
                    stop_on_hang=options.stop_on_hang,
                    hang_after=options.hang_after,
                    ends_survivors=not options.wrapped,
                ),
            ),
            launch.at,
            catalogue().entries,
            self.clock.utc,
        )
        self.logs = [
            WorkerLog(str(w.index), w.index, self._log_file(w.index), self.terminal)
            for w in launch.workers
        ]
        self.pids: dict[int, int] = {}
        self.let_through: dict[int, int] = {}
        self.ooms: dict[int, tuple[Path | None, int]] = {}
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.wake = asyncio.Event()
        self.open_streams = 0
        self.interrupts = 0
        self.next_slow = 0.0
        self.done: set[int] = set()
        self.failed_to_start = False
        self.broken = False
        self.ending: asyncio.Task[None] | None = None
        self.looking: asyncio.Task[None] | None = None

    def _log_file(self, index: int) -> Path:
        return self.launch.plan.run_dir / "logs" / f"worker-{index}.log"

    async def run(self) -> int:
        """The whole life of the job; returns the exit code."""
        loop = asyncio.get_running_loop()
        self._listen(loop)
        last = self.clock.monotonic()
        while True:
            now = self.clock.monotonic()
            if now - last > OVERSLEPT + CALM:
                self.events.append(Overslept(seconds=now - last))
            last = now
            self._careful_tick(now)
            if self._over():
                break
            self.wake.clear()
            try:
                await asyncio.wait_for(self.wake.wait(), self._pause(now))
            except TimeoutError:
                pass
        return await self._finish(loop)

    def _careful_tick(self, now: float) -> None:
        """A fault of ours must not end somebody's training: it is told once, and watching goes on."""
        try:
            self._tick(now)
        except Exception as error:
            if not self.broken:
                self.broken = True
                self.journal.event(self.clock.utc(now), traceback.format_exc())
                self._say(now, f"a fault of allaboard's own, training goes on: {error!r}")

    def _tick(self, now: float) -> None:
        events, self.events = self.events, []
        awaited = self.job.rolled_at is None and int(now * 2) != int((now - QUICK) * 2)
        few = self.launch.plan.size == 1
        events += self.watch.look(now, candidates=awaited and few and not self.options.observe)
        for box in self.watch.boxes.values():
            box.beat(now, self.let_through.get(box.pid, 0))
        for command in self.job.handle(now, *events):
            self._do(now, command)
        if now >= self.next_slow:
            self.next_slow = now + SLOW
            self._count_ooms()
        self.terminal.status(self._status(now))

    def _count_ooms(self) -> None:
        """A process may be moved to another control group; its count there starts when it comes."""
        for worker, pid in self.pids.items():
            file = oom.counter_file(pid) if worker not in self.done else None
            if file is not None and file != self.ooms.get(worker, (None, 0))[0]:
                self.ooms[worker] = (file, oom.count(file))

    def _pause(self, now: float) -> float:
        silent = now - self.job.progress_at > 1.0
        return (
            QUICK if self.job.rolled_at is None or self.ending else (CALM / 2 if silent else CALM)
        )

    def _status(self, now: float) -> str:
        if not self.terminal.live:
            return ""
        text = progress(self.job.view(now))
        return f"{SPINNER[int(now * 8) % len(SPINNER)]} {text}" if text else ""

    def _do(self, now: float, command: Command) -> None:
        match command:
            case LetThrough():
                self.let_through[command.pid] = command.round
                box = self.watch.boxes.get(command.pid)
                if box is not None:
                    box.beat(now, command.round)
            case Note():
                self.launch.release_ports()
                self._say(now, command.text)
            case Announce():
                self._announce(command.finding)
            case Look():
                if self.looking is None or self.looking.done():
                    self.looking = asyncio.ensure_future(self._look(command.pids))
            case End():
                self._end(now, command)

    def _announce(self, finding: Finding) -> None:
        self.journal.finding(finding)
        colour = self.terminal.live and "NO_COLOR" not in os.environ
        for line in finding_lines(finding, colour, self.options.verbose):
            self.terminal.say(line)

    async def _look(self, pids: tuple[int, ...]) -> None:
        now = self.clock.monotonic
        self.events += await asyncio.gather(
            *(sampler.look(p, self.watch.boxes.get(p), now()) for p in pids)
        )
        self.events.append(Locks(waits=lock_waits()))

    def _say(self, now: float, text: str) -> None:
        self.notes.append(text)
        self.journal.event(self.clock.utc(now), text)
        self.terminal.say(f"allaboard: {text}")

    # -- ending ------------------------------------------------------------------------------

    def _end(self, now: float, command: End) -> None:
        self._say(now, command.reason)
        for box in self.watch.boxes.values():
            box.say(f"allaboard: {command.reason}")
            box.beat(now, self.let_through.get(box.pid, 0), verdict=1)
        patience = LEAVE if command.outcome is Outcome.ROLL_CALL_FAILED else 0.0
        self.ending = asyncio.ensure_future(self._terminate(patience, signal.SIGTERM, group=False))

    async def _terminate(self, patience: float, number: int, group: bool) -> None:
        """The signal after ``patience`` s, SIGKILL after the grace, to all that is left."""
        await asyncio.sleep(patience)
        self._signal(number, group)
        if number == signal.SIGTERM:
            self._signal(signal.SIGCONT, group)  # a stopped process cannot act on SIGTERM
        await asyncio.sleep(self.options.grace)
        self._tell({"do": "end", "grace": 0.0})

    def _interrupt(self, number: int) -> None:
        """The user's signal: passed on; at the second one everything ends at once."""
        now = self.clock.monotonic()
        self.interrupts += 1
        self.events.append(Interrupted(signal=number))
        name = signal.Signals(number).name
        if self.interrupts == 1:
            self._say(now, f"{name}: passed on; ending in {self.options.grace:g} s, again: at once")
            if self.ending is None:
                group = number == signal.SIGINT  # as a terminal sends it
                self.ending = asyncio.ensure_future(self._terminate(0.0, number, group))
        else:
            self._say(now, f"{name} again: ending everything now")
            self._tell({"do": "end", "grace": 0.0})
        self.wake.set()

    def _forward(self, number: int) -> None:
        self._signal(number, group=False)

    def _signal(self, number: int, group: bool) -> None:
        for pid in self.pids.values():
            self._tell({"do": "signal", "pid": pid, "signal": int(number), "group": group})

    def _tell(self, message: dict[str, object]) -> None:
        try:
            self.launch.reaper.send(json.dumps(message).encode())
        except OSError:
            pass  # the reaper is gone, and the workers with it

    def _over(self) -> bool:
        alive = len(self.logs) - len([p for p in self.pids if p in self.done])
        return alive == 0

    # -- what comes in ------------------------------------------------------------------------

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        self.launch.reaper.setblocking(False)
        loop.add_reader(self.launch.reaper, self._from_reaper)
        for worker, log in zip(self.launch.workers, self.logs, strict=True):
            log.trouble = lambda why: self._say(self.clock.monotonic(), why)
            for number, fd in ((1, worker.out), (2, worker.err)):
                os.set_blocking(fd, False)
                self.open_streams += 1
                loop.add_reader(fd, self._from_worker, loop, log, number, fd)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asks us to ignore SIGHUP
                loop.add_signal_handler(number, self._interrupt, number)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, self._forward, number)

    def _from_worker(
        self, loop: asyncio.AbstractEventLoop, log: WorkerLog, number: int, fd: int
    ) -> None:
        if self.terminal.full and not log.kept:
            loop.remove_reader(fd)
            loop.call_later(CROWDED, loop.add_reader, fd, self._from_worker, loop, log, number, fd)
            return
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        log.feed(number, data)
        if not data:
            loop.remove_reader(fd)
            os.close(fd)
            self.open_streams -= 1

    def _from_reaper(self) -> None:
        while True:
            try:
                data = self.launch.reaper.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._reaper_gone()
                return
            self._heard(json.loads(data))
            self.wake.set()

    def _heard(self, message: dict[str, object]) -> None:
        now = self.clock.monotonic()
        if "spawned" in message:
            worker, pid = int(str(message["spawned"])), int(str(message["pid"]))
            self.pids[worker] = pid
            self.watch.launched(worker, pid)
            self.journal.worker(worker, pid, self.launch.boxes)
            self.events.append(Launched(worker=worker, pid=pid, at=float(str(message["at"]))))
        elif "failed" in message:
            worker = int(str(message["failed"]))
            self.done.add(worker)
            self.pids[worker] = 0
            self._say(now, f"worker {worker} could not be started: {message['why']}")
            self.failed_to_start = True
        elif "exited" in message:
            self._worker_exited(message)
        self.watch.ready = len(self.pids) == len(self.logs)

    def _worker_exited(self, message: dict[str, object]) -> None:
        worker, pid = int(str(message["exited"])), int(str(message["pid"]))
        self.events += self.watch.last(pid, float(str(message["at"])))
        self.watch.exited(pid)
        file, before = self.ooms.get(worker, (None, 0))
        killed = message["signal"] == signal.SIGKILL
        self.events.append(
            Exited(
                pid=pid,
                at=float(str(message["at"])),
                code=None if message["code"] is None else int(str(message["code"])),
                signal=None if message["signal"] is None else int(str(message["signal"])),
                oom=killed and oom.count(file) > before,
                last_line=self.logs[worker].last_line,
            )
        )
        self.done.add(worker)

    def _reaper_gone(self) -> None:
        """Somebody killed the reaper: the workers went with it; what they left comes to us."""
        asyncio.get_running_loop().remove_reader(self.launch.reaper)
        now = self.clock.monotonic()
        self._say(now, "the reaper was killed; every worker ended with it")
        for worker, pid in self.pids.items():
            if worker not in self.done:
                self.events.append(Exited(pid=pid, at=now, signal=int(signal.SIGKILL)))
                self.watch.exited(pid)
        self.done |= set(range(len(self.logs)))

    # -- the end --------------------------------------------------------------------------------

    async def _finish(self, loop: asyncio.AbstractEventLoop) -> int:
        for task in (self.ending, self.looking):
            if task is not None:
                task.cancel()
        self._tell({"do": "end", "grace": LEFTOVER})
        await self._drain()
        now = self.clock.monotonic()
        view = self.job.view(now)
        for command in self.job.handle(now):
            if isinstance(command, Announce):
                self._announce(command.finding)
        outcome, reason = self.job.outcome()
        if self.failed_to_start and outcome is Outcome.COMPLETED:
            outcome, reason = Outcome.FAILED, "a worker could not be started"
        code = exit_code(outcome, self.job.interrupted)
        plan = self.launch.plan
        report = assemble(
            job=plan.job,
            command=tuple(plan.command),
            outcome=outcome,
            reason=reason,
            code=code,
            started=self.clock.utc(self.launch.at),
            seconds=now - self.launch.at,
            run_dir=str(plan.run_dir),
            view=view,
            findings=self.job.ledger.findings,
            notes=tuple(self.notes),
        )
        self.journal.report(report, self.options.report)
        for line in summary_lines(report):
            self.terminal.say(f"allaboard: {line}")
        if self.journal.trouble:
            self.terminal.say(
                f"allaboard: could not write all of the run folder: {self.journal.trouble}"
            )
        self.terminal.close()
        self.journal.close()
        self.launch.clean()
        return code

    async def _drain(self) -> None:
        """Waits until what the workers left behind is gone and their last lines are read."""
        deadline = self.clock.monotonic() + LEFTOVER + 3.0
        while self.open_streams and self.clock.monotonic() < deadline:
            await asyncio.sleep(0.02)
        for log in self.logs:
            log.feed(1, b"")
            log.feed(2, b"")
            log.close()


def run(launch: Launch, options: Options) -> int:
    """Watches what was launched until it has ended; returns the exit code of allaboard."""

    async def main() -> int:
        return await Agent(launch, options).run()

    return asyncio.run(main())
