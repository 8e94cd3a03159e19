"""The workers as the reaper tells of them: started, could not be started, ended and how."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from allaboard.agent.process_watcher import ProcessWatcher
from allaboard.agent.worker_output import WorkerOutput
from allaboard.hosts import oom, proc
from allaboard.protocol.events import Event, ProcessExited, WorkerLaunched

WriteLine = Callable[[str], None]


class WorkerProcesses:
    """The agent's end of the reaper's socket.

    ``all_ended`` is set when nothing is left of them and below them, after `end`, but what is in ``left``.
    ``events`` collects what happened since it was last taken; ``wake`` is called when there is
    something new; ``started`` is told every worker and its pid.
    """

    def __init__(
        self,
        reaper: socket.socket,
        streams: WorkerOutput,
        watch: ProcessWatcher,
        say: WriteLine,
        wake: Callable[[], None],
        started: Callable[[int, int], None],
    ) -> None:
        self._reaper = reaper
        self._streams = streams
        self._watch = watch
        self._say = say
        self._wake = wake
        self._started = started
        self._pids: dict[int, int] = {}
        self._done: set[int] = set()
        self._kills = oom.OomKills()
        self._adopted: dict[int, int] = {}
        self.aside: dict[int, Callable[[dict[str, Any]], None]] = {}
        self.events: list[Event] = []
        self.failed_to_start = False
        self.left_running: list[int] = []
        self.all_ended = asyncio.Event()

    @property
    def all_exited(self) -> bool:
        """Whether every worker has ended."""
        return len(self._done) == len(self._streams.logs)

    def start_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        self._reaper.setblocking(False)
        loop.add_reader(self._reaper, self._ready)

    def stop_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listens no more: the reaper's next words are of another round."""
        loop.remove_reader(self._reaper)

    def expect_restart(self, worker: int) -> None:
        """It will be started again: while it is not there, the job is not over."""
        self._done.discard(worker)

    def give_up(self, worker: int) -> None:
        """It will not be started again."""
        self._done.add(worker)

    def adopt_process(self, worker: int, pid: int, at: float) -> None:
        """A process that the reaper knows by another number is this worker from now on."""
        self._adopted[pid] = worker
        self._spawned(worker, pid, at)
        self._wake()

    def kill_process(self, pid: int) -> None:
        """Ends this one at once."""
        self.send_to_reaper(
            {"do": "signal", "pid": pid, "signal": int(signal.SIGKILL), "group": False}
        )

    def signal_workers(self, number: int, group: bool) -> None:
        """To every worker, or to its whole process group, as a terminal does."""
        for pid in self._pids.values():
            self.send_to_reaper({"do": "signal", "pid": pid, "signal": int(number), "group": group})

    def end_all(self, grace: float, spare: bool = False) -> None:
        """SIGTERM to all that is left of them and below them, SIGKILL after ``grace`` s; but, with ``spare``,
        to what has a session of its own."""
        self.send_to_reaper({"do": "end", "grace": grace, "spare": spare})

    def send_to_reaper(self, message: dict[str, object]) -> None:
        try:
            self._reaper.send(json.dumps(message).encode())
        except OSError:
            pass  # the reaper is gone, and the workers with it

    def watch_oom_counters(self) -> None:
        """Notes in which control group each worker is now."""
        for worker, pid in self._pids.items():
            self._kills.watch_group(
                worker, oom.oom_counter_file(pid) if worker not in self._done else None
            )

    def was_oom_killed(self, worker: int) -> bool:
        """Whether the kernel has killed one more in a control group of this worker for want of memory."""
        return self._kills.claim_kill(worker)

    def _ready(self) -> None:
        while True:
            try:
                data = self._reaper.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._reaper_gone()
                return
            self._heard(json.loads(data))
            self._wake()

    def _spawned(self, worker: int, pid: int, at: float) -> None:
        self._pids[worker] = pid
        self._watch.add_worker(worker, pid)
        self._started(worker, pid)
        self.events.append(WorkerLaunched(worker=worker, pid=pid, at=at))

    def _heard(self, message: dict[str, Any]) -> None:
        number = message.get("spawned", message.get("failed", message.get("exited", 0)))
        if number < 0 and message.get("pid") in self._adopted:
            message["exited"] = self._adopted[message["pid"]]
        elif number < 0:
            if number in self.aside:
                self.aside[number](message)
            return
        if "spawned" in message:
            self._spawned(int(message["spawned"]), int(message["pid"]), float(message["at"]))
        elif "failed" in message:
            worker = int(message["failed"])
            self._done.add(worker)
            self._pids[worker] = 0
            self.failed_to_start = True
            self._say(f"worker {worker} could not be started: {message['why']}")
        elif "exited" in message:
            self._exited(message)
        elif "ended" in message:
            self.left_running = [int(pid) for pid in message.get("left", ())]
            self._undying()
            self.all_ended.set()
        self._watch.ready = len(self._pids) == len(self._streams.logs)

    def _undying(self) -> None:
        """Those that SIGKILL did not end: they have it, and nobody can do more, nor waits."""
        for worker, pid in self._pids.items():
            if pid and worker not in self._done:
                seen = proc.read_stat(pid)
                state = f", state {seen.state}" if seen is not None else ""
                self._say(
                    f"process {pid} did not end by SIGKILL (ps -o stat,wchan,user -p {pid}){state}"
                )
                at = asyncio.get_running_loop().time()
                self.events.append(ProcessExited(pid=pid, at=at, signal=int(signal.SIGKILL)))
                self._watch.mark_exited(pid)
                self._done.add(worker)

    def _exited(self, message: dict[str, Any]) -> None:
        worker, pid, at = int(message["exited"]), int(message["pid"]), float(message["at"])
        self.events += self._watch.sample_last_state(pid, at)
        self._watch.mark_exited(pid)
        killed = message["signal"] == signal.SIGKILL
        self.events.append(
            ProcessExited(
                pid=pid,
                at=at,
                code=message["code"],
                signal=message["signal"],
                oom=killed and self.was_oom_killed(worker),
                last_line=self._streams.read_last_line(worker),
            )
        )
        self._done.add(worker)

    def _reaper_gone(self) -> None:
        """Somebody killed the reaper: the workers went with it, and what was below them is ours."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._reaper)
        self.all_ended.set()
        if self.all_exited:
            return
        self._say("the reaper was killed, and every worker with it")
        self.failed_to_start = self.failed_to_start or len(self._pids) < len(self._streams.logs)
        for worker, pid in self._pids.items():
            if worker not in self._done:
                self.events.append(
                    ProcessExited(pid=pid, at=loop.time(), signal=int(signal.SIGKILL))
                )
                self._watch.mark_exited(pid)
        self._done |= set(range(len(self._streams.logs)))
        for pid in proc.descendants_of(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self._wake()
