"""Starts single workers again: at once from a standby process, or anew, after the delay that was decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from allaboard.agent.announcer import Announcer
from allaboard.launch.local_workers import Launch, Worker, WorkerStartError
from allaboard.protocol.commands import RestartWorker

STANDBY_POLL_S = 0.05
"""Seconds between two checks whether the standby process has finished its imports."""


class RestartableWorkers(Protocol):
    """The part of `worker_processes.WorkerProcesses` that restarts use."""

    def expect_restart(self, worker: int) -> None:
        """Note that this worker will be started again."""

    def give_up(self, worker: int) -> None:
        """Note that this worker will not be started again."""

    def kill_process(self, pid: int) -> None:
        """Kill this process with SIGKILL."""


class PipeReader(Protocol):
    """The part of `worker_output.WorkerOutput` that restarts use."""

    def attach_restarted(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        """Read the pipes of the process that was started in place of this worker."""


class StandbySource(Protocol):
    """The part of `standby_process.StandbyProcess` that restarts use."""

    def hand_over(self, index: int, now: float) -> Worker | None:
        """Turn the standby process into this worker; return None if it is not ready yet."""

    def is_worth_waiting_for(self, index: int, now: float) -> bool:
        """Return True if a task should wait for it."""


class WorkerRestarts:
    """The pending restarts of this host; ``wake`` is called when a worker cannot be started again."""

    def __init__(
        self,
        launch: Launch,
        workers: RestartableWorkers,
        output: PipeReader,
        standby: StandbySource,
        announcer: Announcer,
        wake: Callable[[], None],
    ) -> None:
        self._launch = launch
        self._workers = workers
        self._output = output
        self._standby = standby
        self._announcer = announcer
        self._wake = wake
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def schedule(self, command: RestartWorker) -> None:
        """Start a worker again after the delay of the command."""
        worker = command.worker
        wait = f" in {command.delay:g} s" if command.delay else ""
        # The local index means nothing to a reader on several hosts; there the reason names the task.
        name = f"{self._launch.worker_name(worker)} " if self._launch.plan.tasks else ""
        self._announcer.write_line(f"{name}starts again{wait}: {command.reason}")
        self._workers.expect_restart(worker)
        loop = asyncio.get_running_loop()
        self._timers[worker] = loop.call_later(command.delay, self._respawn, loop, worker)

    def _respawn(self, loop: asyncio.AbstractEventLoop, worker: int) -> None:
        # The timer has fired; `cancel_all` must not give the worker up after it was started.
        del self._timers[worker]
        now = self._announcer.clock.monotonic()
        worker_process = self._standby.hand_over(worker, now)
        if worker_process is None and self._standby.is_worth_waiting_for(worker, now):
            self._timers[worker] = loop.call_later(STANDBY_POLL_S, self._respawn, loop, worker)
            return
        try:
            self._output.attach_restarted(
                loop, worker_process or self._launch.respawn_worker(worker)
            )
        except WorkerStartError as error:
            self._workers.give_up(worker)
            self._announcer.write_line(
                f"{self._launch.worker_name(worker)} cannot be started again: {error}"
            )
            self._wake()

    def cancel_all(self) -> None:
        """Cancel all pending restarts, because the job ends."""
        for worker, timer in self._timers.items():
            timer.cancel()
            self._workers.give_up(worker)
        self._timers.clear()
