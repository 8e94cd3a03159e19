"""A command that runs on a host."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.requirements import program

SECONDS = 5.0
AWAKE = 0.2
"""Seconds after which one that has not ended is woken once more."""


def entering(first: int) -> list[str]:
    """The words before a command that run it on the host of this first process."""
    every = ("--net", "--uts", "--mount", "--pid", "--ipc", "--time")
    return [program("nsenter"), "--target", str(first), *every]


class Process:
    """A command on a host; its output goes to the file ``output``.

    ``pid`` is its process as this machine sees it. It and all that it started end with
    ``kill``, and with the bed at the latest.
    """

    def __init__(
        self,
        first: int,
        command: Sequence[str],
        output: Path,
        environment: Mapping[str, str] | None,
        folder: Path,
    ) -> None:
        # With a new mount namespace the working directory is lost: env sets it anew.
        words = [*entering(first), program("env"), "--chdir", str(folder), *command]
        self.output = output
        with output.open("wb") as sink:
            self._outer = subprocess.Popen(
                words,
                env=None if environment is None else dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._inner()

    def _inner(self) -> int:
        """nsenter's child. Where it has ended already, nsenter's own pid, which names nobody else."""
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self._outer.poll() is None:
            try:
                if pids := children.read_text().split():
                    return int(pids[0])
            except OSError:
                break
            time.sleep(0.001)
        return self._outer.pid

    def text(self) -> str:
        """What it has written so far."""
        return self.output.read_text(errors="replace")

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._outer.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        return self._outer.wait(timeout)

    def last(self) -> int:
        """Its exit code, once its host has ended it. Where the command was stopped, nsenter has stopped
        itself too, and nobody but us wakes it: it may do so a moment after it was woken."""
        while True:
            self._outer.send_signal(signal.SIGCONT)
            try:
                return self._outer.wait(AWAKE)
            except subprocess.TimeoutExpired:
                continue

    def send_signal(self, number: int) -> None:
        """Sends it a signal, where it still runs."""
        if self._outer.poll() is None and self.pid != self._outer.pid:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it and everything that it started."""
        # Itself first: a shell whose child is killed may come to its own end, with another code.
        found = _with_descendants(self.pid, self._outer.pid)
        for pid in sorted(found, key=lambda pid: pid != self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.last()


def _with_descendants(pid: int, session: int) -> set[int]:
    """The process, its children's children, and whoever else is of its session."""
    parents: dict[int, int] = {}
    chosen = {pid} - {session}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            if int(fields[3]) == session and int(entry.name) != session:
                chosen.add(int(entry.name))
    while more := {p for p, parent in parents.items() if parent in chosen} - chosen:
        chosen |= more
    return chosen
