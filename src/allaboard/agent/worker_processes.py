"""Tracks the workers by the reaper's messages: started, failed to start, ended and how."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Sized
from itertools import count
from typing import Any, Protocol

from allaboard.analysis.failures.failure_causality import CRASH_SIGNALS
from allaboard.facts.member import STOPPED
from allaboard.facts.time_shares import PrintedLoss
from allaboard.hosts import oom, pidfd, proc
from allaboard.launch.signals import send_through_pidfd
from allaboard.protocol.events import Event, ProcessExited, WorkerLaunched
from allaboard.report.exit_countdown import RunningWorker

WriteLine = Callable[[str], None]

SHARED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that a batch system or a terminal sends to all processes of a job, this one too."""
SHARED_SIGNAL_GRACE_S = 0.3
"""How long the end of a worker by such a signal is kept back, so that our own signal is heard first: a worker
was seen to end up to 0.1 s before it. Without that, it would seem that somebody killed this worker alone."""


_END_NUMBERS = count(1)
"""A number for each request to end all, of any round: the answer to an earlier one may come in a later round,
whose workers it does not mean."""


class WorkerLogs(Protocol):
    """The part of `worker_output.WorkerOutput` that is used here."""

    @property
    def logs(self) -> Sized:
        """One log per worker."""

    def printed_loss(self, index: int) -> PrintedLoss | None:
        """Return the losses that a worker prints, if the last of them are not finite."""

    def read_last_line(self, index: int, has_crashed: bool = False) -> str:
        """Return the last line of a worker that has ended, by the signal of a crash or in another way."""

    def count_redraws(self, index: int) -> int:
        """Return how often a worker has drawn a progress bar anew."""

    def only_crash(self, index: int) -> str:
        """Return the one report of a crash in a worker's log; "" for none, and for several."""


class WorkerRegister(Protocol):
    """The part of `process_watcher.ProcessWatcher` that is used here."""

    def add_worker(self, worker: int, pid: int) -> None:
        """Note the pid of a worker."""

    def confirm_workers(self, all_known: bool) -> None:
        """Note whether the pid of every worker is known."""

    def mark_exited(self, pid: int) -> None:
        """Note that this process has ended."""

    def sample_last_state(self, pid: int, now: float) -> list[Event]:
        """Return the last sample of a worker that has ended."""


class WorkerProcesses:
    """The agent's end of the reaper's socket.

    The reaper is the parent of all workers, so only it gets their exit statuses; it also ends what they leave
    behind. ``wake`` is called when there is an event; ``on_started`` is called with the number and the pid of
    every worker; ``name_worker`` returns the name of a worker for people.
    """

    def __init__(
        self,
        reaper: socket.socket,
        output: WorkerLogs,
        watcher: WorkerRegister,
        write_line: WriteLine,
        wake: Callable[[], None],
        on_started: Callable[[int, int], None],
        name_worker: Callable[[int], str] = "worker {}".format,
    ) -> None:
        self._reaper = reaper
        self._output = output
        self._watcher = watcher
        self._write_line = write_line
        self._wake = wake
        self._on_started = on_started
        self._name_worker = name_worker
        self._pids: dict[int, int] = {}
        self._ended: set[int] = set()
        self._has_signalled = False
        """True once the workers were sent a signal from here."""
        self._oom_kills = oom.OomKills()
        self._adopted: dict[int, int] = {}
        self._helpers: dict[int, Callable[[dict[str, Any]], None]] = {}
        self._last_end = 0
        self.standing_by: Callable[[], list[int]] = list
        """Pids of processes that outlive this round, for the next one."""
        self.events: list[Event] = []
        """What happened, until the loop takes it."""
        self.failed_to_start = False
        self.has_failure = False
        """True once a worker has ended otherwise than with exit code 0."""
        self.left_running: list[int] = []
        """Pids of detached processes that were spared at the end."""
        self.all_ended = asyncio.Event()
        """Set after `end_all` when no process is left but those in ``left_running``."""

    @property
    def all_exited(self) -> bool:
        """True if every worker has ended."""
        return len(self._ended) == len(self._output.logs)

    def add_helper(self, number: int, handle: Callable[[dict[str, Any]], None]) -> None:
        """Pass the reaper's messages about this process, which is no worker (``number`` < 0), to
        ``handle``."""
        self._helpers[number] = handle

    def start_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read the reaper's messages in this loop."""
        self._reaper.setblocking(False)
        loop.add_reader(self._reaper, self._on_readable)

    def stop_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop reading: the reaper's next messages belong to the next round."""
        loop.remove_reader(self._reaper)

    def expect_restart(self, worker: int) -> None:
        """Note that this worker will be started again: meanwhile the job is not over."""
        self._ended.discard(worker)

    def give_up(self, worker: int) -> None:
        """Note that this worker will not be started again."""
        self._ended.add(worker)

    def adopt_process(self, worker: int, pid: int, adopted_at: float) -> None:
        """Make a process that the reaper knows by another number this worker from now on."""
        self._adopted[pid] = worker
        self._on_spawned(worker, pid, adopted_at)
        self._watcher.confirm_workers(len(self._pids) == len(self._output.logs))
        self._wake()

    def running_workers(self) -> list[RunningWorker]:
        """Return the workers that have not exited, with the state that the kernel reports."""
        running = []
        for worker, pid in self._pids.items():
            if pid and worker not in self._ended:
                stat = proc.read_stat(pid)
                state = stat.state if stat is not None else ""
                running.append(RunningWorker(self._name_worker(worker), pid, state))
        return running

    def stopped_processes(self) -> list[RunningWorker]:
        """Return the workers that are stopped, and the stopped processes below workers: a launcher waits for
        its ranks."""
        stopped = []
        for worker in self.running_workers():
            if worker.state in STOPPED:
                stopped.append(worker)
            for pid in proc.descendants_of(worker.pid):
                stat = proc.read_stat(pid)
                if stat is not None and stat.state in STOPPED:
                    stopped.append(RunningWorker(f"a process below {worker.name}", pid, stat.state))
        return stopped

    def kill_process(self, pid: int) -> None:
        """Kill this process with SIGKILL."""
        self.send_to_reaper(
            {"do": "signal", "pid": pid, "signal": int(signal.SIGKILL), "group": False}
        )

    def signal_stopped(self, pid: int, number: int) -> None:
        """Send a signal to this process, a worker or below one, if it is still stopped."""
        # The reaper signals its own children alone. The descriptor keeps the signal from a later process that
        # got the same pid.
        try:
            process = pidfd.open_process(pid)
        except OSError:
            return  # it has gone
        try:
            stat = proc.read_stat(pid)
            if stat is not None and stat.state in STOPPED:
                send_through_pidfd(process, number)
        except OSError:
            pass  # it has gone, or belongs to another user
        finally:
            os.close(process)

    def signal_workers(self, number: int, group: bool) -> None:
        """Send a signal to every worker or, with ``group``, to its whole process group, as a terminal
        does."""
        self._has_signalled = True
        if len(self._pids) < len(self._output.logs):
            # Those that are still to be forked (--warm) have no process that could hear it.
            self.send_to_reaper({"do": "withdraw"})
        for pid in self._pids.values():
            self.send_to_reaper({"do": "signal", "pid": pid, "signal": int(number), "group": group})

    def end_all(self, grace: float, keep_sessions: bool = False) -> None:
        """Send SIGTERM to all workers and all below them, and SIGKILL after ``grace`` seconds.

        ``keep_sessions``: spare processes that have a session of their own. Those that stand by are spared
        always; they end with the reaper.
        """
        self._has_signalled = True
        self._last_end = next(_END_NUMBERS)
        self.send_to_reaper(
            {
                "do": "end",
                "of": self._last_end,
                "grace": grace,
                "spare": keep_sessions,
                "keep": self.standing_by(),
            }
        )

    def send_to_reaper(self, message: dict[str, object]) -> None:
        """Send one request; the socket is SOCK_SEQPACKET, so a message arrives whole or not at all."""
        try:
            self._reaper.send(json.dumps(message).encode())
        except OSError:
            pass  # the reaper is gone, and the workers with it

    def watch_oom_counters(self) -> None:
        """Note in which control group each worker is now: a worker may be moved to another one."""
        for worker, pid in self._pids.items():
            self._oom_kills.watch_group(
                worker, oom.oom_counter_file(pid) if worker not in self._ended else None
            )

    def was_oom_killed(self, worker: int) -> bool:
        """Return True if the kernel has killed another process in this worker's control group because memory
        ran out."""
        return self._oom_kills.claim_kill(worker)

    def _on_readable(self) -> None:
        while True:
            try:
                # Until EAGAIN: many workers may exit in the same moment, and each message wakes the loop only
                # once.
                data = self._reaper.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._on_reaper_lost()
                return
            try:
                self._on_message(json.loads(data))
            finally:
                self._wake()

    def _on_spawned(self, worker: int, pid: int, launched_at: float) -> None:
        self._pids[worker] = pid
        self._watcher.add_worker(worker, pid)
        self._on_started(worker, pid)
        self.events.append(WorkerLaunched(worker=worker, pid=pid, launched_at=launched_at))

    def _on_message(self, message: dict[str, Any]) -> None:
        number = message.get("spawned", message.get("failed", message.get("exited", 0)))
        # Negative numbers are helpers. A standby process that was handed over keeps its number in the reaper,
        # so its exit is translated to the worker that it has become.
        if number < 0 and message.get("pid") in self._adopted:
            message["exited"] = self._adopted[message["pid"]]
        elif number < 0:
            if number in self._helpers:
                self._helpers[number](message)
            return
        if "spawned" in message:
            self._on_spawned(int(message["spawned"]), int(message["pid"]), float(message["at"]))
        elif "failed" in message:
            worker = int(message["failed"])
            self._ended.add(worker)
            # Counts as known: `all_known` below must not wait for a process that will never exist.
            self._pids[worker] = 0
            self.failed_to_start = True
            self._write_line(f"worker {worker} could not be started: {message['why']}")
        elif "withdrawn" in message:
            self._ended.add(int(message["withdrawn"]))
            self._pids[int(message["withdrawn"])] = 0
        elif "exited" in message:
            if message["signal"] in SHARED_SIGNALS and not self._has_signalled:
                asyncio.get_running_loop().call_later(
                    SHARED_SIGNAL_GRACE_S, self._on_delayed_exit, message
                )
            else:
                self._on_exited(message)
        elif "ended" in message and message.get("of") == self._last_end:
            self.left_running = [int(pid) for pid in message.get("left", ())]
            self._report_unkillable()
            self.all_ended.set()
        self._watcher.confirm_workers(len(self._pids) == len(self._output.logs))

    def _report_unkillable(self) -> None:
        """Report the workers that SIGKILL did not end (stuck in the kernel, state D), and count them as
        ended.

        Nobody can do more about them, and waiting for them would never end.
        """
        for worker, pid in self._pids.items():
            if pid and worker not in self._ended:
                stat = proc.read_stat(pid)
                state = f", state {stat.state}" if stat is not None else ""
                self._write_line(
                    f"pid {pid} did not end after SIGKILL{state}; see: ps -o stat,wchan,user -p {pid}"
                )
                now = asyncio.get_running_loop().time()
                self.events.append(
                    ProcessExited(pid=pid, exited_at=now, signal=int(signal.SIGKILL))
                )
                self._watcher.mark_exited(pid)
                self._ended.add(worker)

    def printed_loss(self, worker: int) -> PrintedLoss | None:
        """Return the losses that a worker prints, if the last of them are not finite."""
        return self._output.printed_loss(worker)

    def count_redraws(self, worker: int) -> int:
        """Return how often a worker has drawn a progress bar anew."""
        return self._output.count_redraws(worker)

    def only_crash(self, worker: int) -> str:
        """Return the one report of a crash in a worker's log; "" for none, and for several."""
        return self._output.only_crash(worker)

    def _on_delayed_exit(self, message: dict[str, Any]) -> None:
        if int(message["exited"]) not in self._ended:
            self._on_exited(message)
            self._wake()

    def _on_exited(self, message: dict[str, Any]) -> None:
        worker, pid, exited_at = int(message["exited"]), int(message["pid"]), float(message["at"])
        try:
            # First the last sample, then the exit: the job state must see the final step and exception of
            # the box before it judges the end.
            self.events += self._watcher.sample_last_state(pid, exited_at)
            self._watcher.mark_exited(pid)
            # The out-of-memory counter is read at once: a worker that is restarted gets a new control group.
            killed = message["signal"] == signal.SIGKILL
            self.has_failure = self.has_failure or message["code"] != 0
            self.events.append(
                ProcessExited(
                    pid=pid,
                    exited_at=exited_at,
                    code=message["code"],
                    signal=message["signal"],
                    oom=killed and self.was_oom_killed(worker),
                    last_line=self._output.read_last_line(
                        worker, has_crashed=message["signal"] in CRASH_SIGNALS
                    ),
                )
            )
        finally:
            # Whatever of this fails: a worker that has ended is not waited for.
            self._ended.add(worker)

    def _on_reaper_lost(self) -> None:
        """Handle a killed reaper.

        The kernel kills the workers with it (PR_SET_PDEATHSIG); what was below them becomes our child
        (subreaper), so we end it.
        """
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._reaper)
        # Nobody will send "ended" any more: whoever waits for it must go on.
        self.all_ended.set()
        if self.all_exited:
            return
        self._write_line("the reaper process was killed, and all workers with it")
        self.failed_to_start = self.failed_to_start or len(self._pids) < len(self._output.logs)
        for worker, pid in self._pids.items():
            if worker not in self._ended:
                self.events.append(
                    ProcessExited(pid=pid, exited_at=loop.time(), signal=int(signal.SIGKILL))
                )
                self._watcher.mark_exited(pid)
        self._ended |= set(range(len(self._output.logs)))
        for pid in proc.descendants_of(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self._wake()
