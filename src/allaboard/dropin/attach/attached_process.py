"""A process that runs already, taken for a worker: nothing is started, and little may be ended.

A thread does what the reaper does for allaboard's own workers: it reports that the process is there and
when it has ended, over the same kind of socket. A signal is passed on only while the process is inside the
framework's own init, which nothing else can interrupt.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

from allaboard.analysis.failures.failure_causality import known_exit_status
from allaboard.hosts import exit_watcher, pidfd
from allaboard.launch import signals
from allaboard.launch.launch_plan import LaunchPlan
from allaboard.launch.local_workers import Launch, Worker
from allaboard.probe import layout

JOINING_PHASE = 5
"""The phase of a member inside the framework's init."""


def attach_to_process(
    pid: int, boxes: Path, run_dir: Path, job: str, command: list[str], watch: bool
) -> Launch:
    """Return the launch of which this process is the one worker; its run is recorded in ``run_dir``.

    With ``watch`` the thread stays until the process ends; else also only until our standard input is
    closed.

    Raises:
        ProcessLookupError: the process has ended already.
    """
    process = pidfd.open_process(pid)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    keeper = _Keeper(theirs, process, pid, boxes / f"{pid}{layout.SUFFIX}", watch)
    threading.Thread(target=keeper.serve_agent, daemon=True).start()
    (run_dir / "logs").mkdir(exist_ok=True)
    plan = LaunchPlan(
        command=command, size=1, is_size_given=False, gate="cluster", run_dir=run_dir, job=job
    )
    worker = Worker(number=0, out=_ended_pipe(), err=_ended_pipe())
    return Launch(
        plan=plan, reaper=ours, boxes=boxes, workers=[worker], ports=[], started_at=time.monotonic()
    )


def _ended_pipe() -> int:
    """Return a pipe that has ended: the output of the process goes where it always went."""
    read, write = os.pipe()
    os.close(write)
    return read


class _Keeper:
    """The thread that stands in for the reaper."""

    def __init__(
        self, agent: socket.socket, process: int, pid: int, box: Path, watch: bool
    ) -> None:
        self.agent = agent
        self.process = process
        self.pid = pid
        self.box = box
        self.watched_fds = [process] if watch else [process, 0]

    def serve_agent(self) -> None:
        self._notify_agent({"spawned": 0, "pid": self.pid, "at": time.monotonic()})
        while True:
            ready, _, _ = select.select([self.agent.fileno(), *self.watched_fds], [], [])
            if self.process in ready or 0 in ready:
                self._notify_agent(
                    {"exited": 0, "pid": self.pid, **self._end_status(), "at": time.monotonic()}
                )
                return
            data = self.agent.recv(1 << 16)
            if not data:
                return
            self._execute(json.loads(data))

    def _end_status(self) -> dict[str, int | None]:
        """Return the exit code or the signal, as far as the exit status is known."""
        status = exit_watcher.exit_status_of(self.pid, self.process)
        code, number = known_exit_status(status) if status is not None else (None, None)
        return {"code": code, "signal": number}

    def _execute(self, message: dict[str, Any]) -> None:
        if not self._may_end():
            return
        number = message["signal"] if message["do"] == "signal" else signal.SIGKILL
        try:
            signals.send_through_pidfd(self.process, number)
        except OSError:
            pass  # it has gone, or is not ours to signal

    def _may_end(self) -> bool:
        try:
            data = self.box.read_bytes()
        except OSError:
            return False
        return bool(layout.STATE.unpack_from(data, layout.STATE_AT)[1] == JOINING_PHASE)

    def _notify_agent(self, message: dict[str, Any]) -> None:
        try:
            self.agent.send(json.dumps(message).encode())
        except OSError:
            pass
