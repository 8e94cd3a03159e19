"""The workers' output: from their pipes to their files and the terminal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from allaboard.agent.terminal import Terminal, WorkerLog
from allaboard.launch.local_workers import Worker

BACKPRESSURE_PAUSE_S = 0.05
"""Seconds that a worker's output waits where neither file nor terminal takes it."""
READ_BYTES = 1 << 16


class WorkerOutput:
    """Two pipes a worker; ``logs`` by worker. ``tasks``: job and index of each, in a job with roles;
    ``rank``: that of the first where it is a member of a job on several hosts."""

    def __init__(
        self,
        workers: list[Worker],
        folder: Path,
        terminal: Terminal,
        tasks: Sequence[tuple[str, int]] = (),
        rank: int = 0,
    ) -> None:
        self._workers = workers
        self._terminal = terminal
        self._open: set[int] = set()
        self.logs = [
            WorkerLog(
                " ".join(map(str, tasks[w.index])) if tasks else str(rank + w.index),
                w.index,
                folder
                / f"{'-'.join(map(str, tasks[w.index])) if tasks else f'worker-{w.index}'}.log",
                terminal,
            )
            for w in workers
        ]

    def write_marker(self, text: str) -> None:
        """A line of allaboard's own in every log file."""
        for log in self.logs:
            log.write_marker(text)

    def start_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        for worker in self._workers:
            self._listen_to(loop, worker)

    def attach_restarted(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        """Another process writes for this worker now."""
        self._workers[worker.index] = worker
        self.logs[worker.index].write_marker("--- allaboard: started again ---")
        self._listen_to(loop, worker)

    def _listen_to(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        for number, fd in ((1, worker.out), (2, worker.err)):
            os.set_blocking(fd, False)
            self._open.add(fd)
            loop.add_reader(fd, self._read, loop, self.logs[worker.index], number, fd)

    def read_last_line(self, worker: int) -> str:
        """The last line of a worker that has ended, what it left in its pipes included."""
        known = self._workers[worker]
        for number, fd in ((1, known.out), (2, known.err)):
            for _ in range(
                64 if fd in self._open else 0
            ):  # a child that it left behind may go on writing
                try:
                    data = os.read(fd, READ_BYTES)
                except OSError:  # nothing there now, or closed already
                    break
                if not data:
                    break
                self.logs[worker].write_output(number, data)
        return self.logs[worker].last_line

    async def drain_pipes(self, patience: float) -> None:
        """Reads the last lines, for at most ``patience`` s: something that was left behind may hold
        a pipe open."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while self._open and loop.time() < deadline:
            await asyncio.sleep(0.02)
        for fd in tuple(self._open):  # what holds it may write on, to nobody
            loop.remove_reader(fd)
            self._open.discard(fd)
            os.close(fd)
        for log in self.logs:
            log.write_output(1, b"")
            log.write_output(2, b"")
            log.close()

    def _read(self, loop: asyncio.AbstractEventLoop, log: WorkerLog, number: int, fd: int) -> None:
        if self._terminal.is_backlogged and not log.is_file_open:
            loop.remove_reader(fd)
            loop.call_later(
                BACKPRESSURE_PAUSE_S, loop.add_reader, fd, self._read, loop, log, number, fd
            )
            return
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return
        log.write_output(number, data)
        if not data:
            loop.remove_reader(fd)
            self._open.discard(fd)
            os.close(fd)
