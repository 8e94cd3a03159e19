"""Reads the workers' pipes and writes their output to files and to the terminal."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from allaboard.agent.output.output_selection import DEFAULT_SELECTION, OutputSelection, worker_label
from allaboard.agent.output.terminal import LineSink
from allaboard.agent.output.worker_log import WorkerLog
from allaboard.facts.time_shares import PrintedLoss
from allaboard.launch.local_workers import Worker
from allaboard.launch.worker_streams import set_size, terminal_size

BACKPRESSURE_PAUSE_S = 0.05
"""Seconds that a worker's pipe is left unread while neither file nor terminal takes its output."""
READ_BYTES = 1 << 16


class WorkerOutput:
    """Reads two pipes per worker.

    ``on_trouble`` is called with a sentence when a log file fails. ``tasks``: job and index of each worker in
    a job with roles, else empty. ``rank``: rank of the first worker. ``selection``: whose output is shown.
    """

    def __init__(
        self,
        workers: list[Worker],
        folder: Path,
        terminal: LineSink,
        on_trouble: Callable[[str], None],
        tasks: Sequence[tuple[str, int]] = (),
        rank: int = 0,
        selection: OutputSelection = DEFAULT_SELECTION,
    ) -> None:
        self._workers = workers
        self._terminal = terminal
        self._open_fds: set[int] = set()
        self._terminal_fds: set[int] = set()
        self._paused: dict[int, asyncio.TimerHandle] = {}
        self.logs = [
            WorkerLog(
                worker_label(w.number, tasks, rank),
                w.number,
                folder
                / f"{'-'.join(map(str, tasks[w.number])) if tasks else f'worker-{w.number}'}.log",
                terminal,
                on_trouble,
                selection,
                strips_colours=w.is_terminal,
            )
            for w in workers
        ]

    def write_marker(self, text: str) -> None:
        """Write a line of allaboard's own into every log file."""
        for log in self.logs:
            log.write_marker(text)

    def start_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read the pipes of all workers in this loop."""
        for worker in self._workers:
            self._listen_to(loop, worker)
        if any(worker.is_terminal for worker in self._workers):
            loop.add_signal_handler(signal.SIGWINCH, self._resize)

    def _resize(self) -> None:
        """Give the workers' terminals the size of ours, less the label in front of each line."""
        columns, lines = terminal_size()
        for worker in self._workers:
            for fd in (worker.out, worker.err):
                if worker.is_terminal and fd in self._open_fds:
                    label_columns = self.logs[worker.number].prefix_columns
                    set_size(fd, columns - label_columns - 1, lines)

    def attach_restarted(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        """Read the pipes of the process that was started in place of this worker."""
        self._workers[worker.number] = worker
        self.logs[worker.number].write_marker("--- allaboard: started again ---")
        self._listen_to(loop, worker)

    def _listen_to(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        for stream, fd in ((1, worker.out), (2, worker.err)):
            # The worker's end stays blocking: only our end of the pipe gets O_NONBLOCK.
            os.set_blocking(fd, False)
            self._open_fds.add(fd)
            if worker.is_terminal:
                self._terminal_fds.add(fd)
            loop.add_reader(fd, self._read_pipe, loop, self.logs[worker.number], stream, fd)
        if worker.is_terminal:
            self._resize()

    def printed_loss(self, index: int) -> PrintedLoss | None:
        """Return the losses that a worker prints, if the last of them are not finite."""
        return self.logs[index].printed_loss()

    def count_redraws(self, index: int) -> int:
        """Return how often a worker has drawn a progress bar anew."""
        return self.logs[index].count_redraws()

    def read_last_line(self, index: int, has_crashed: bool = False) -> str:
        """Return the last line of a worker that has ended, including what it left in its pipes;
        ``has_crashed``: see `WorkerLog.last_words`.

        Bounded, since a child that it left behind may go on writing.
        """
        self._read_pending(index)
        return self.logs[index].last_words(has_crashed)

    def only_crash(self, index: int) -> str:
        """Return the one report of a crash in a worker's log, also of a process that it has started; "" for
        none, and for several."""
        self._read_pending(index)
        return self.logs[index].only_crash()

    def _read_pending(self, index: int) -> None:
        """Read what is in a worker's pipes now."""
        worker = self._workers[index]
        for stream, fd in ((1, worker.out), (2, worker.err)):
            # A child that it left behind may go on writing
            for _ in range(64 if fd in self._open_fds else 0):
                try:
                    data = os.read(fd, READ_BYTES)
                except OSError:  # nothing there now (EAGAIN), or closed already
                    break
                if not data:
                    break
                self.logs[index].write_output(stream, data)

    async def drain_pipes(self, timeout_s: float) -> None:
        """Read the last lines, for at most ``timeout_s`` seconds: a process that was left behind may hold a
        pipe open."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        # Polled, since the readers in this loop close the descriptors one by one.
        while self._open_fds and loop.time() < deadline:
            await asyncio.sleep(0.02)
        # A process that still holds it gets SIGPIPE or EPIPE when it writes
        for fd in tuple(self._open_fds):
            loop.remove_reader(fd)
            self._close(fd)
        for log in self.logs:
            # The empty write flushes a last line without a newline.
            log.write_output(1, b"")
            log.write_output(2, b"")
            log.close()

    def _read_pipe(
        self, loop: asyncio.AbstractEventLoop, log: WorkerLog, stream: int, fd: int
    ) -> None:
        if self._terminal.is_backlogged and not log.is_file_open:
            # Backpressure: with its pipe unread the worker blocks, as it would on a slow terminal of its own.
            self._read_later(loop, log, stream, fd)
            return
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            # A pseudo-terminal ends with EIO once nobody has its other end open: pty(7). A pipe does not:
            # to close it would end the worker at its next line (EPIPE), so it is read again.
            if error.errno != errno.EIO or fd not in self._terminal_fds:
                self._read_later(loop, log, stream, fd)
                return
            data = b""
        log.write_output(stream, data)
        if not data:
            loop.remove_reader(fd)
            self._close(fd)

    def _read_later(
        self, loop: asyncio.AbstractEventLoop, log: WorkerLog, stream: int, fd: int
    ) -> None:
        # add_reader keeps the descriptor in epoll, so it must go before the number is used again.
        loop.remove_reader(fd)
        self._paused[fd] = loop.call_later(
            BACKPRESSURE_PAUSE_S, loop.add_reader, fd, self._read_pipe, loop, log, stream, fd
        )

    def _close(self, fd: int) -> None:
        # Else the pause would end with a number that is closed, or another worker's by then.
        if (pause := self._paused.pop(fd, None)) is not None:
            pause.cancel()
        self._open_fds.discard(fd)
        self._terminal_fds.discard(fd)
        os.close(fd)
