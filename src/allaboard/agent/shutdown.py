"""Ends the job: on the user's signal, or by order of the coordinator."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Protocol

from allaboard.facts.signal_name import signal_name
from allaboard.report.exit_countdown import (
    RunningWorker,
    countdown_text,
    is_reminder_due,
    name_running,
)

WriteLine = Callable[[str], None]
STOPPED_GRACE_S = 2.0
"""Seconds after the signal, and after SIGCONT, in which a stopped worker must move, or it is killed."""
SIGNAL_DEBOUNCE_S = 0.1
"""Seconds within which a second signal counts as the first one: nobody types that fast."""


class SignalledWorkers(Protocol):
    """The part of `worker_processes.WorkerProcesses` that a shutdown uses."""

    @property
    def all_exited(self) -> bool:
        """True if every worker has ended."""

    def running_workers(self) -> list[RunningWorker]:
        """Return the workers that have not exited."""

    def stopped_processes(self) -> list[RunningWorker]:
        """Return the workers that are stopped, and the stopped processes below workers."""

    def signal_stopped(self, pid: int, number: int) -> None:
        """Send a signal to this process, if it is still stopped."""

    def signal_workers(self, number: int, group: bool) -> None:
        """Send a signal to every worker, or to its whole process group."""

    def end_all(self, grace: float) -> None:
        """Send SIGTERM to all workers and all below them, and SIGKILL after ``grace`` seconds."""


class Shutdown:
    """Sends a signal first and SIGKILL after ``grace`` seconds; SIGKILL at once if the user asks a second
    time."""

    def __init__(self, workers: SignalledWorkers, grace: float, write_line: WriteLine) -> None:
        self._workers = workers
        self.grace = grace
        self._write_line = write_line
        self._signal_count = 0
        self._last_signal_at = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self.countdown = ""
        """Who still runs, and when they are killed, for the status line; "" before the signal was sent."""

    @property
    def has_begun(self) -> bool:
        """True once the workers are being ended."""
        return self._task is not None

    def install_signal_handlers(
        self,
        loop: asyncio.AbstractEventLoop,
        on_interrupt: Callable[[int], None],
        on_forward: Callable[[int], None],
    ) -> None:
        """Handle the user's signals in this loop.

        SIGINT, SIGTERM and SIGHUP end the job; ``on_interrupt`` is called with their number. SIGUSR1 and
        SIGUSR2 are the user's own and only passed on, after a call of ``on_forward``. SIGTSTP (Ctrl-Z) stops
        the workers, too.
        """

        def end(number: int) -> None:
            on_interrupt(number)
            self.handle_interrupt(number)

        def forward(number: int) -> None:
            on_forward(number)
            self._forward_signal(number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup(1) starts us with SIGHUP ignored: keep it so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, end, number)
        # Schedulers and users give these their own meaning (checkpoint now, requeue): passed on and nothing
        # else.
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, forward, number)
        # Under a shell without job control SIGTSTP is ignored, and must stay so.
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            loop.add_signal_handler(signal.SIGTSTP, self._suspend_job)

    def _forward_signal(self, number: int) -> None:
        self._write_line(f"{signal_name(number)} passed to the workers")
        self._workers.signal_workers(number, False)

    def _suspend_job(self) -> None:
        """Stop all workers and this process; continue the workers when this process continues (fg, bg).

        The second line returns only after SIGCONT, so the third one wakes the workers.
        """
        # Not SIGTSTP: workers may handle it, and their own children are not in the terminal's foreground
        # group.
        self._workers.signal_workers(signal.SIGSTOP, True)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._workers.signal_workers(signal.SIGCONT, True)

    def handle_interrupt(self, number: int) -> None:
        """Pass the user's signal to the workers; at the second one, kill everything.

        One request may arrive twice: both the shell and the kernel send SIGHUP when a terminal closes, and
        timeout(1) signals its child and then the child's process group.
        """
        now = time.monotonic()
        # Signals are debounced by time and not by sender: asyncio's handlers do not get siginfo.
        if self._signal_count and (
            number == signal.SIGHUP or now - self._last_signal_at < SIGNAL_DEBOUNCE_S
        ):
            return
        self._last_signal_at = now
        self._signal_count += 1
        name = signal_name(number)
        if self._workers.all_exited:
            what = "Ctrl-C" if number == signal.SIGINT else name
            self._write_line(f"{what}: no worker is running; ending the run and writing its report")
            return
        # `end_all(0)` skips SIGTERM's grace: the reaper sends SIGKILL to everything that is left.
        if self._signal_count > 1:
            self._write_line(f"{name} again: killing all workers now")
            self._workers.end_all(0.0)
            return
        is_ctrl_c = number == signal.SIGINT
        again = "press Ctrl-C again" if is_ctrl_c else f"send {name} again"
        running = self._workers.running_workers()
        pronoun = "It has" if len(running) == 1 else "They have"
        self._write_line(
            f"{'Ctrl-C' if is_ctrl_c else name} passed to {name_running(running) or 'the workers'}. "
            f"{pronoun} {self.grace:g} s to exit; {again} to kill {'it' if len(running) == 1 else 'them'} now"
        )
        # The coordinator may be ending the job already; its grace runs on.
        if not self.has_begun:
            self.begin_shutdown(0.0, number, group=number == signal.SIGINT)

    def begin_shutdown(self, delay_s: float, number: int, group: bool) -> None:
        """Send the signal after ``delay_s`` seconds, and SIGKILL after the grace to all that is left.

        ``group``: to the whole process group of each worker, as a terminal does.
        """
        # The reference in `_task` keeps the task alive: the loop itself holds tasks only weakly.
        self._task = asyncio.ensure_future(self._run_shutdown(delay_s, number, group))

    def shorten_grace(self, seconds: float) -> None:
        """Wait no longer than ``seconds`` before SIGKILL."""
        self.grace = min(self.grace, seconds)

    def cancel(self) -> None:
        """Send no further signal."""
        if self._task is not None:
            self._task.cancel()

    async def _run_shutdown(self, delay_s: float, number: int, group: bool) -> None:
        await asyncio.sleep(delay_s)
        self._workers.signal_workers(number, group)
        # A stopped process cannot act on a signal; nor can a launcher end while it waits for a stopped rank.
        for process in self._workers.stopped_processes():
            self._workers.signal_stopped(process.pid, signal.SIGCONT)
        # Read only now, since `shorten_grace` may have changed it during the delay.
        await self._count_down(self.grace)
        self._workers.end_all(0.0)

    async def _count_down(self, grace_s: float) -> None:
        """Wait for the grace, and show who still runs. Workers that cannot react are not waited for."""
        loop = asyncio.get_running_loop()
        kill_at = loop.time() + grace_s
        stopped_checked_at = loop.time() + min(STOPPED_GRACE_S, grace_s)
        is_stopped_checked = False
        while (left_s := kill_at - loop.time()) > 0:
            running = self._workers.running_workers()
            if not is_stopped_checked and loop.time() >= stopped_checked_at:
                is_stopped_checked = True
                self._kill_stopped()
            self.countdown = countdown_text(running, left_s)
            if self.countdown and is_reminder_due(round(left_s)) and left_s < grace_s - 1:
                self._write_line(self.countdown)
            await asyncio.sleep(min(1.0, left_s))

    def _kill_stopped(self) -> None:
        """Kill the processes that are stopped although they were continued: a debugger holds them, or they
        were stopped again."""
        for process in self._workers.stopped_processes():
            how = "held by a debugger" if process.state == "t" else "stopped"
            self._write_line(
                f"{process.name} (pid {process.pid}) is {how} and cannot react: killed"
            )
            self._workers.signal_stopped(process.pid, signal.SIGKILL)
