"""The process that keeps the servers' variables in memory: started, listened to, and again when it ends."""

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
from allaboard.policy.restart.snapshot_owner import is_kept_here, is_kept_here_too
from allaboard.protocol.events import Event, SnapshotTaken
from allaboard.report.servers import format_bytes

SNAPSHOT_PROCESS_NUMBER = -2
"""What the reaper calls it."""
MAX_STARTS = 3
"""How often it is started at most."""


class SnapshotProcess:
    """``events`` collects the snapshots that were taken, until they are taken in; ``wake`` is called then.
    Those of a host that keeps the values too are no events: no session restores them."""

    def __init__(
        self, launch: Launch, workers: WorkerProcesses, voice: Announcer, wake: Callable[[], None]
    ) -> None:
        self._launch = launch
        self._voice = voice
        self._wake = wake
        self._log = launch.plan.run_dir / "logs" / "snapshots.log"
        self._asked: Worker | None = None
        self._starts = 0
        self._rest = b""
        self._told = False
        self._second = False
        self.events: list[Event] = []
        workers.aside[SNAPSHOT_PROCESS_NUMBER] = self._heard

    def start_if_due(self, view: JobView) -> None:
        """Starts it once the chief trains, where that is ours; or who keeps them besides."""
        if not self._launch.plan.snapshot or self._asked is not None or self._starts >= MAX_STARTS:
            return
        if is_kept_here(view):
            self._start()
        elif is_kept_here_too(view):
            self._second = True
            self._start()

    def close(self) -> None:
        """Listens no more; the reaper ends it with all the others."""
        if self._asked is not None:
            loop = asyncio.get_running_loop()
            for fd in (self._asked.out, self._asked.err):
                loop.remove_reader(fd)
                os.close(fd)
            self._asked = None

    def _start(self) -> None:
        self._starts += 1
        plan = self._launch.plan
        place = str(Path(serving.__file__).with_name("ps_snapshotter.py"))
        # It is no member, and needs no GPU.
        environment = dict(self._launch.environments[-1], ALLABOARD_BOX="", CUDA_VISIBLE_DEVICES="")
        command = [plan.command[0], place, str(self._launch.boxes), f"{plan.snapshot:g}"]
        self._asked = self._launch.aside(SNAPSHOT_PROCESS_NUMBER, command, environment)
        loop = asyncio.get_running_loop()
        for fd, take in ((self._asked.out, self._lines), (self._asked.err, self._keep)):
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._read, fd, take)

    def _heard(self, message: dict[str, Any]) -> None:
        if "spawned" in message or self._asked is None:
            return
        self.close()
        again = (
            "it is started again" if self._starts < MAX_STARTS else "no further snapshot is taken"
        )
        self._voice.write_line(
            f"the process that keeps the snapshots has ended ({self._log}); {again}"
        )

    def _read(self, fd: int, take: Callable[[bytes], None]) -> None:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if data:
            take(data)
        else:
            asyncio.get_running_loop().remove_reader(fd)

    def _keep(self, data: bytes) -> None:
        try:
            with self._log.open("ab") as file:
                file.write(data)
        except OSError:
            pass  # a disk that is full is told by the workers' logs

    def _lines(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                self._take(msgspec.json.decode(line))
            except msgspec.MsgspecError:  # something that it imports prints too
                self._keep(line + b"\n")

    def _take(self, told: dict[str, Any]) -> None:
        if "trouble" in told:
            self._voice.write_line(f"no snapshot of the variables: {told['trouble']}")
            self._told = False
            return
        taken = msgspec.convert(told, SnapshotTaken)
        if not self._second:
            self.events.append(taken)
            self._wake()
        if not self._told:
            self._told = True
            period = self._launch.plan.snapshot
            where = "here too, should the chief's host be lost," if self._second else "in memory"
            self._voice.write_line(
                f"a snapshot of {taken.variables} variables, {format_bytes(taken.bytes)}, is kept {where} every "
                f"{period:g} s; it takes {taken.seconds:.2g} s"
            )
