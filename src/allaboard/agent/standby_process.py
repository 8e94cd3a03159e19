"""Keeps a process ready, with its imports done, that takes the place of a task that ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.facts import JobView
from allaboard.launch import serving
from allaboard.launch.local_workers import Launch, Worker
from allaboard.policy.restart.restart_policy import RestartPolicy
from allaboard.policy.restart.standby_start import is_standby_due

STANDBY_PROCESS_NUMBER = -1
"""Number of this process in the reaper's messages; workers count from 0."""
MAX_STARTUP_S = 60.0
"""Seconds from its start after which nobody waits for it any more."""


class StandbyProcess:
    """Starts a standby process when one may be needed, hands it over to a task, and starts the next one."""

    def __init__(self, launch: Launch, workers: WorkerProcesses, policy: RestartPolicy) -> None:
        self._launch = launch
        self._workers = workers
        self._policy = policy
        self._process: Worker | None = None
        self._pid = 0
        self._taken_at = 0.0
        self._failures = 0
        self._start_count = 0
        self._promised_to = -1
        self._started_at = 0.0
        workers.add_helper(STANDBY_PROCESS_NUMBER, self._on_reaper_message)

    @property
    def is_waiting(self) -> bool:
        """True while a standby process lives that no task has taken."""
        return self._process is not None

    def start_if_due(self, view: JobView, restarts_before: int) -> None:
        """Start a standby process if it is time for one; ``restarts_before`` restarts were used up
        already."""
        if not self._launch.plan.standby or self.is_waiting:
            return
        if is_standby_due(view, self._policy, restarts_before, self._taken_at, self._failures):
            self._start_process(view.now)

    def is_worth_waiting_for(self, index: int, now: float) -> bool:
        """Return True if a task should wait for it: a new process would have to do the same imports beside
        it."""
        if (
            not self.is_waiting
            or self._promised_to not in (-1, index)
            or now - self._started_at > MAX_STARTUP_S
        ):
            return False
        # Promised to one task only: two tasks that end together must not both wait for this process.
        self._promised_to = index
        return True

    def hand_over(self, index: int, now: float) -> Worker | None:
        """Turn it into this worker, with the addresses that the worker had; return None if it is not ready
        yet."""
        process, pid = self._process, self._pid
        self._taken_at = now
        if process is None or not pid or self._promised_to not in (-1, index):
            return None
        environment = dict(self._launch.environments[index])
        # The probe buffers stdout by lines if its inode is that of our pipe, so that logs come at once.
        environment["ALLABOARD_STDOUT"] = str(os.fstat(process.out).st_ino)
        order = {
            "worker": index,
            "words": self._launch.interpreter_arguments(index),
            "environment": environment,
        }
        try:
            # O_NONBLOCK only to open: without a reader open(2) would block the loop until the imports are
            # done.
            fd = os.open(self._fifo_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # ENXIO: nobody reads the pipe yet, it still imports
            return None
        # The order may exceed the pipe's buffer; the reader is there, so a blocking write ends soon.
        os.set_blocking(fd, True)
        with os.fdopen(fd, "wb") as file:
            file.write(json.dumps(order).encode())
        # Each standby process has a pipe of its own, so that an order can never reach the next one.
        Path(self._fifo_path).unlink(missing_ok=True)
        self._process = None
        self._workers.adopt_process(index, pid, now)
        worker = Worker(number=index, out=process.out, err=process.err)
        self._launch.workers[index] = worker
        return worker

    def close(self) -> None:
        """Close the pipes of a process that was not needed; the reaper ends it together with the workers."""
        if self._process is not None:
            os.close(self._process.out)
            os.close(self._process.err)
            self._process = None

    @property
    def _fifo_path(self) -> str:
        return str(self._launch.boxes / f"standby-{self._start_count}")

    def _start_process(self, now: float) -> None:
        self._start_count += 1
        self._pid = 0
        self._promised_to = -1
        self._started_at = now
        plan = self._launch.plan
        script = "" if plan.command[1] == "-m" else plan.command[1]
        standby_script = str(Path(serving.__file__).with_name("standby.py"))
        # Any worker's environment will do for the imports; the real one comes with the order.
        environment = dict(self._launch.environments[-1])
        try:
            os.mkfifo(self._fifo_path, 0o600)
        except OSError:  # no room in /dev/shm: a task that ends is started in the ordinary way
            self._failures += 1
            return
        command = [plan.command[0], standby_script, self._fifo_path, script]
        self._process = self._launch.spawn_helper(STANDBY_PROCESS_NUMBER, command, environment)

    def _on_reaper_message(self, message: dict[str, Any]) -> None:
        if "spawned" in message:
            self._pid = int(message["pid"])
        elif self.is_waiting:
            self._failures += 1
            self.close()
