"""Processes that stand by for the next round: each has imported what its rank had, and waits to become it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from allaboard.launch import serving
from allaboard.launch.local_workers import Launch, Worker
from allaboard.probe.layout import IMPORTS_PREFIX

FIRST_NUMBER = -100
"""Number of the first of them in the reaper's messages; the others count down from it."""
READ_AT_INIT = frozenset(
    (
        "ALLABOARD_ROUND",
        "ALLABOARD_STDOUT",
        "JAX_COORDINATOR_ADDRESS",
        "MASTER_PORT",
        "TF_CONFIG",
        "TORCHELASTIC_RESTART_COUNT",
    )
)
"""Variables that a new round changes, and that no framework reads while it is imported: PyTorch's env://
rendezvous, jax.distributed.initialize and TFConfigClusterResolver read theirs when they are called."""


class HelperRegister(Protocol):
    """The part of `agent.worker_processes.WorkerProcesses` that is used here."""

    def add_helper(self, number: int, handle: Callable[[dict[str, Any]], None]) -> None:
        """Pass the reaper's messages about this process to ``handle``."""


@dataclass
class _Waiting:
    """A process that stands by for one worker."""

    number: int
    process: Worker
    environment: dict[str, str]
    fifo: Path
    pid: int = 0
    order_fd: int = -1
    """Write end of its FIFO; -1 as long as it imports."""


class StandbyRanks:
    """Keeps up to ``count`` processes over all rounds of a job, each for one worker: its environment is that
    of this worker from the start, since frameworks read variables while they are imported."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: dict[int, _Waiting] = {}
        self._next_number = FIRST_NUMBER
        self._launch: Launch | None = None
        self._workers: HelperRegister | None = None
        self._is_complete = False
        self._failures = 0
        self._why_unfit = ""

    def begin_round(self, launch: Launch, workers: HelperRegister) -> None:
        """Follow this round's workers; those that are ready already go on waiting."""
        self._launch, self._workers = launch, workers
        for waiting in self._waiting.values():
            workers.add_helper(waiting.number, self._on_reaper_message)

    def ready_pids(self) -> list[int]:
        """Return the pids of those that have done their imports."""
        return [w.pid for w in self._waiting.values() if w.order_fd >= 0 and w.pid]

    def advance(self, may_start: Callable[[int], bool]) -> str:
        """Note which are ready; start the next one if none imports, so that one processor is enough.

        ``may_start`` is asked with the number of those that exited while they waited. Returns a line for
        people if all are ready now, or one has given up; else "".
        """
        was_complete, self._why_unfit, why_unfit = self._is_complete, "", self._why_unfit
        is_importing = False
        for waiting in self._waiting.values():
            if waiting.order_fd < 0:
                is_importing = not _open_fifo(waiting)
        self._is_complete = self._count == len(self.ready_pids())
        if not is_importing and not self._is_complete:
            index = self._next_index()
            if index is not None and may_start(self._failures):
                self._start(index)
        if self._is_complete and not was_complete:
            noun = "process stands" if self._count == 1 else "processes stand"
            return f"{self._count} {noun} by for the next round"
        return f"a process that was to stand by differs: {why_unfit}" if why_unfit else ""

    def _next_index(self) -> int | None:
        """Return the first worker for which none stands by, and of which it is known what it imports."""
        assert self._launch is not None
        for index in range(self._count):
            if index not in self._waiting and self._record(index).exists():
                return index
        return None

    def _record(self, index: int) -> Path:
        assert self._launch is not None
        return self._launch.boxes / f"{IMPORTS_PREFIX}{index}"

    def take(self, index: int, environment: dict[str, str]) -> Worker | None:
        """Turn the process that stands by for this worker into it; return None if there is none that is
        ready, or if it has imported under other variables than those in ``environment``."""
        waiting = self._waiting.get(index)
        if waiting is None or waiting.order_fd < 0 or not waiting.pid or self._launch is None:
            return None
        if not may_become(waiting.environment, environment):
            return None
        del self._waiting[index]
        changed = {n: v for n, v in environment.items() if waiting.environment.get(n) != v}
        # Its pipes are its own: by their number the probe knows whether its standard output is one of them.
        changed.pop("ALLABOARD_STDOUT", None)
        words = self._launch.interpreter_arguments(index)
        order = {"worker": index, "words": words, "environment": changed}
        try:
            # The order may exceed the pipe's buffer; the reader is there, so a blocking write ends soon.
            os.set_blocking(waiting.order_fd, True)
            with os.fdopen(waiting.order_fd, "wb") as file:
                file.write(json.dumps(order).encode())
        except OSError:  # EPIPE: it was killed, and the reaper's message is still to come
            _close_streams(waiting)
            return None
        process = waiting.process
        return process._replace(number=index, pid=waiting.pid)

    def drop_importing(self) -> None:
        """Give up those that are not ready; the reaper ends them with the round."""
        for index, waiting in list(self._waiting.items()):
            if waiting.order_fd < 0 or not waiting.pid:
                self._drop(index)

    def close(self) -> None:
        """Let all of them exit."""
        for index in list(self._waiting):
            self._drop(index)

    def _start(self, index: int) -> None:
        assert self._launch is not None and self._workers is not None
        plan = self._launch.plan
        number = self._next_number
        self._next_number -= 1
        fifo = self._launch.boxes / f"standby{number}"
        script = "" if plan.command[1] == "-m" else plan.command[1]
        program = str(Path(serving.__file__).with_name("standby.py"))
        environment = dict(self._launch.environments[index])
        self._workers.add_helper(number, self._on_reaper_message)
        words = [plan.command[0], program, str(fifo), script, str(self._record(index))]
        try:
            os.mkfifo(fifo, 0o600)
            process = self._launch.spawn_helper(
                number, words, environment, index in plan.on_terminal
            )
        except (
            OSError
        ):  # no room in /dev/shm, too many files: the next round starts in the ordinary way
            self._failures += 1
            fifo.unlink(missing_ok=True)
            return
        self._waiting[index] = _Waiting(number, process, environment, fifo)

    def _on_reaper_message(self, message: dict[str, Any]) -> None:
        number = message.get("spawned", message.get("failed", message.get("exited")))
        for index, waiting in list(self._waiting.items()):
            if waiting.number != number:
                continue
            if "spawned" in message:
                waiting.pid = int(message["pid"])
            else:
                self._failures += 1
                self._why_unfit = _read_reason(waiting.fifo)
                self._drop(index)

    def _drop(self, index: int) -> None:
        waiting = self._waiting.pop(index)
        if waiting.order_fd >= 0:
            os.close(waiting.order_fd)
        waiting.fifo.unlink(missing_ok=True)
        _close_streams(waiting)


def may_become(prepared: Mapping[str, str], needed: Mapping[str, str]) -> bool:
    """Return True if a process that has imported with one environment can run with the other: they differ in
    nothing that an import may have read."""
    names = prepared.keys() | needed.keys()
    return all(n in READ_AT_INIT or prepared.get(n) == needed.get(n) for n in names)


def _open_fifo(waiting: _Waiting) -> bool:
    """Return True if the process reads its FIFO, which it does once its imports are done."""
    try:
        # Without O_NONBLOCK, open(2) would wait for the reader.
        waiting.order_fd = os.open(waiting.fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # ENXIO: nobody reads yet
        return False
    waiting.fifo.unlink(missing_ok=True)
    return True


def _read_reason(fifo: Path) -> str:
    try:
        return Path(f"{fifo}.unfit").read_text()
    except OSError:
        return ""


def _close_streams(waiting: _Waiting) -> None:
    os.close(waiting.process.out)
    os.close(waiting.process.err)
