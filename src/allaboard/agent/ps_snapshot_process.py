"""Starts the process that keeps snapshots of the servers' variables in memory, and restarts it when it
ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from allaboard.agent.announcer import Announcer
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.facts import JobView
from allaboard.launch import serving
from allaboard.launch.local_workers import Launch, Worker
from allaboard.launch.private_files import open_to_append
from allaboard.policy.restart.snapshot_owner import keeps_snapshot_copies, keeps_snapshots
from allaboard.protocol.events import Event, SnapshotTaken
from allaboard.report.servers import format_bytes

SNAPSHOT_PROCESS_NUMBER = -2
"""Number of this process in the reaper's messages; workers count from 0."""
MAX_STARTS = 3
"""Largest number of starts."""


class SnapshotProcess:
    """The agent's side of the snapshot process; ``wake`` is called when a snapshot was taken.

    Snapshots of a host that only keeps a second copy are no events: no session restores from them.
    """

    def __init__(
        self,
        launch: Launch,
        workers: WorkerProcesses,
        announcer: Announcer,
        wake: Callable[[], None],
    ) -> None:
        self._launch = launch
        self._announcer = announcer
        self._wake = wake
        self._log = launch.plan.run_dir / "logs" / "snapshots.log"
        self._process: Worker | None = None
        self._starts = 0
        self._partial_line = b""
        self._has_announced = False
        self._is_second_keeper = False
        self.events: list[Event] = []
        """Snapshots that were taken, until the loop takes them."""
        workers.add_helper(SNAPSHOT_PROCESS_NUMBER, self._on_reaper_message)

    def start_if_due(self, view: JobView) -> None:
        """Start it once the chief trains, if the chief or the second copy is on this host."""
        if (
            not self._launch.plan.snapshot_interval_s
            or self._process is not None
            or self._starts >= MAX_STARTS
        ):
            return
        if keeps_snapshots(view):
            self._start_process()
        elif keeps_snapshot_copies(view):
            self._is_second_keeper = True
            self._start_process()

    def close(self) -> None:
        """Close its pipes; the reaper ends the process together with the workers."""
        if self._process is not None:
            loop = asyncio.get_running_loop()
            for fd in (self._process.out, self._process.err):
                loop.remove_reader(fd)
                os.close(fd)
            self._process = None

    def _start_process(self) -> None:
        self._starts += 1
        plan = self._launch.plan
        script = str(Path(serving.__file__).with_name("ps_snapshotter.py"))
        # The process is no member (no black box), and must not take GPU memory from the workers.
        environment = dict(self._launch.environments[-1], ALLABOARD_BOX="", CUDA_VISIBLE_DEVICES="")
        command = [
            plan.command[0],
            script,
            str(self._launch.boxes),
            f"{plan.snapshot_interval_s:g}",
        ]
        self._process = self._launch.spawn_helper(SNAPSHOT_PROCESS_NUMBER, command, environment)
        loop = asyncio.get_running_loop()
        # stdout carries one JSON message per line; stderr, and whatever a library prints, goes to the log.
        for fd, handle_bytes in (
            (self._process.out, self._take_lines),
            (self._process.err, self._append_log),
        ):
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._read_pipe, fd, handle_bytes)

    def _on_reaper_message(self, message: dict[str, Any]) -> None:
        if "spawned" in message or self._process is None:
            return
        self.close()
        sequel = "restarting it" if self._starts < MAX_STARTS else "no more snapshots are taken"
        self._announcer.write_line(f"the snapshot process has ended (log: {self._log}); {sequel}")

    def _read_pipe(self, fd: int, handle_bytes: Callable[[bytes], None]) -> None:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if data:
            handle_bytes(data)
        else:
            asyncio.get_running_loop().remove_reader(fd)

    def _append_log(self, data: bytes) -> None:
        try:
            with os.fdopen(open_to_append(self._log), "ab") as file:
                file.write(data)
        except OSError:
            pass  # the workers' logs report a full disk already

    def _take_lines(self, data: bytes) -> None:
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        for line in lines:
            try:
                self._take_message(msgspec.json.decode(line))
            except msgspec.MsgspecError:  # a library that it imports printed a line
                self._append_log(line + b"\n")

    def _take_message(self, message: dict[str, Any]) -> None:
        if "trouble" in message:
            self._announcer.write_line(f"no snapshot of the variables: {message['trouble']}")
            self._has_announced = False
            return
        snapshot = msgspec.convert(message, SnapshotTaken)
        if not self._is_second_keeper:
            self.events.append(snapshot)
            self._wake()
        if not self._has_announced:
            self._has_announced = True
            period = self._launch.plan.snapshot_interval_s
            location = (
                "here too, should the chief's host be lost,"
                if self._is_second_keeper
                else "in memory"
            )
            self._announcer.write_line(
                f"a snapshot of {snapshot.variables} variables, {format_bytes(snapshot.bytes)}, "
                f"is kept {location} every {period:g} s; it takes {snapshot.seconds:.2g} s"
            )
