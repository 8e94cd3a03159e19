"""A job over the hosts of a bed, one worker each, that is hurt while it trains."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allaboard.blackbox.reader import OpenBox
from multihost_drills.run_host_drill import CLUSTER, described
from testbed import Bed, Process

BIN = Path(sys.executable).parent
LIMIT = 150.0
AHEAD = 5.0


class Hosted:
    """The runs of one job, ``each`` on each host of the bed, numbered through. ``options`` are those of
    ``allaboard run``, and ``others`` those of runs that get others. The run ``first`` is some seconds
    ahead of the others."""

    def __init__(
        self,
        bed: Bed,
        framework: str,
        words: Sequence[str],
        options: Sequence[str] = ("--on-failure", "restart"),
        *,
        others: Mapping[int, Sequence[str]] = {},
        roles: tuple[str, ...] = (),
        each: int = 1,
        first: int = 0,
    ) -> None:
        self.bed = bed
        self.hosts = [host for host in bed.hosts for _ in range(each)]
        self.folders = [bed.folder / f"run-{index}" for index in range(len(self.hosts))]
        made: dict[int, Process] = {}
        for index in sorted(range(len(self.hosts)), key=lambda index: index != first):
            host = self.hosts[index]
            environment = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
            environment |= described(framework, index, len(self.hosts), roles)
            if each > 1:
                environment |= {"LOCAL_RANK": str(index % each), "LOCAL_WORLD_SIZE": str(each)}
            environment |= {"OMP_NUM_THREADS": "1", "ALLABOARD_SECRET": "known to all hosts"}
            environment["VIRTUAL_ENV"] = str(BIN.parent)
            environment["PATH"] = os.pathsep.join((str(BIN), os.environ["PATH"]))
            command = [sys.executable, "-m", "allaboard", "run", "--grace", "3", "--run-dir"]
            command += [str(self.folders[index]), *others.get(index, options), *words]
            made[index] = bed.start(host, command, environment)
            if index == first and first:
                time.sleep(AHEAD)
        self.processes = [process for _, process in sorted(made.items())]

    def text(self, host: int) -> str:
        return self.processes[host].text()

    def wait_for(self, what: str, host: int = 0, count: int = 1) -> None:
        deadline = time.monotonic() + LIMIT
        while len(re.findall(what, self.text(host))) < count:
            alive = self.processes[host].poll() is None
            assert alive and time.monotonic() < deadline, f"no {what} in {self.text(host)[-3000:]}"
            time.sleep(0.05)

    def wait_for_steps(self, count: int, host: int = 0) -> None:
        """Returns when the worker of this run has done so many steps, by its black box."""
        deadline, steps = time.monotonic() + LIMIT, 0
        while steps < count:
            assert self.processes[host].poll() is None, self.text(host)[-3000:]
            assert time.monotonic() < deadline, f"{steps} steps in {self.text(host)[-3000:]}"
            time.sleep(0.05)
            with contextlib.suppress(OSError, ValueError, IndexError):
                newest = self._workers(host)[-1]
                folder = self.bed.path(self.hosts[host], newest["boxes"])
                steps = OpenBox(folder / f"{newest['pid']}.box").read_snapshot().step

    def hurt(self, host: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends the signal to the newest worker of this run."""
        self.bed.run(self.hosts[host], "kill", f"-{int(number)}", str(self.newest(host)))

    def newest(self, host: int) -> int:
        """The pid, on its host, of the process that is the worker of this run now, or was it last."""
        return int(self._workers(host)[-1]["pid"])

    def _workers(self, host: int) -> list[dict[str, Any]]:
        """What its journal says of its worker's processes, the oldest first."""
        journal = (self.folders[host] / "journal.jsonl").read_text()
        return [json.loads(line) for line in journal.splitlines() if '"kind":"worker"' in line]

    def lose_agent(self, host: int) -> None:
        """Kills the agent of this host; its worker goes with it."""
        self.processes[host].send_signal(signal.SIGKILL)

    def interrupt(self, host: int, number: signal.Signals) -> None:
        """The agent of this host is asked for the end."""
        self.processes[host].send_signal(number)

    def end(self, hosts: Sequence[int] = ()) -> list[tuple[int, dict[str, Any]]]:
        """Exit code and report of each of these (all), once they have ended."""
        told = []
        for host in hosts or range(len(self.processes)):
            try:
                code = self.processes[host].wait(LIMIT)
            except subprocess.TimeoutExpired:
                said = "\n".join(self.text(h)[-3000:] for h in range(len(self.processes)))
                raise AssertionError(f"host {host} has not ended in {LIMIT} s:\n{said}") from None
            report = self.folders[host] / "report.json"
            assert report.exists(), self.text(host)[-3000:]
            assert "Traceback (most recent call last):\n  File" not in self.text(host)
            told.append((code, json.loads(report.read_text())))
        return told
