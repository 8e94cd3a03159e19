"""How a job is ended: by the user's signal, or because the coordinator says so."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.facts.signal_name import signal_name

WriteLine = Callable[[str], None]
SIGNAL_DEBOUNCE_S = 0.1
"""Seconds in which a second signal is still the first: nobody types so fast."""


class Shutdown:
    """Signals first, SIGKILL after the grace (s), at once when the user asks a second time."""

    def __init__(self, workers: WorkerProcesses, grace: float, write_line: WriteLine) -> None:
        self._workers = workers
        self.grace = grace
        self._write_line = write_line
        self._signal_count = 0
        self._last_signal_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def has_begun(self) -> bool:
        return self._task is not None

    def install_signal_handlers(
        self, loop: asyncio.AbstractEventLoop, on_interrupt: Callable[[int], None]
    ) -> None:
        """SIGINT, SIGTERM and SIGHUP end the job and are told to ``interrupted``; SIGUSR1 and
        SIGUSR2 are the user's own and only passed on; SIGTSTP (Ctrl-Z) stops the workers, too."""

        def end(number: int) -> None:
            on_interrupt(number)
            self.handle_interrupt(number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asks us to ignore SIGHUP
                loop.add_signal_handler(number, end, number)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, self._forward_signal, number)
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            loop.add_signal_handler(signal.SIGTSTP, self._suspend_job)

    def _forward_signal(self, number: int) -> None:
        self._write_line(f"{signal_name(number)}: passed on")
        self._workers.signal_workers(number, False)

    def _suspend_job(self) -> None:
        """Stops all workers, and this process; and lets them go on when it goes on (fg, bg)."""
        self._workers.signal_workers(signal.SIGSTOP, True)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._workers.signal_workers(signal.SIGCONT, True)

    def handle_interrupt(self, number: int) -> None:
        """The user's signal is passed on; at the second one everything ends at once. That a terminal closes
        is told by its shell and by the kernel; timeout(1) tells its child, and then the child's group."""
        now = time.monotonic()
        if self._signal_count and (
            number == signal.SIGHUP or now - self._last_signal_at < SIGNAL_DEBOUNCE_S
        ):
            return
        self._last_signal_at = now
        self._signal_count += 1
        name = signal_name(number)
        if self._workers.all_exited:
            self._write_line(f"{name}: ending")
            return
        if self._signal_count > 1:
            self._write_line(f"{name} again: ending everything now")
            self._workers.end_all(0.0)
            return
        self._write_line(f"{name}: passed on; ending in {self.grace:g} s, again: at once")
        if not self.has_begun:
            self.begin_shutdown(0.0, number, group=number == signal.SIGINT)

    def begin_shutdown(self, delay_s: float, number: int, group: bool) -> None:
        """The signal after ``patience`` s, SIGKILL after the grace, to all that is left."""
        self._task = asyncio.ensure_future(self._run_shutdown(delay_s, number, group))

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run_shutdown(self, delay_s: float, number: int, group: bool) -> None:
        await asyncio.sleep(delay_s)
        self._workers.signal_workers(number, group)
        if number == signal.SIGTERM:
            self._workers.signal_workers(
                signal.SIGCONT, group
            )  # a stopped process cannot act on SIGTERM
        await asyncio.sleep(self.grace)
        self._workers.end_all(0.0)
