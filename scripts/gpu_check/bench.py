"""Runs programs for a step, keeps what they print, and ends them all."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import Machine

ROOT = Path(__file__).parents[2]
JOBS = Path(__file__).parent / "jobs"
TOTAL_S = 570.0
"""Seconds for everything; steps that would begin later are left out."""
_ports = itertools.count(21000 + os.getpid() % 4000)
"""Free to use for meetings, one after another."""


@dataclass(frozen=True)
class Outcome:
    """What a step showed."""

    held: bool
    detail: str


def says(output: str, pattern: str, never: str = "") -> Outcome:
    """Return whether an output has the pattern and not the other one, with the line that shows it."""
    flat = re.sub(r"\n +", " ", output)  # findings are wrapped
    wrong = re.search(never, flat) if never else None
    if wrong is not None:
        return Outcome(False, f"said, and is wrong: {wrong[0][:160]}")
    found = re.search(pattern, flat)
    return Outcome(found is not None, found[0][:200] if found else f"not said: {pattern}")


class Bench:
    """The processes of one step."""

    def __init__(self, out: Path, machine: Machine, device: str, deadline: float) -> None:
        self.out, self.machine, self.device, self.deadline = out, machine, device, deadline
        self._started: list[subprocess.Popen[str]] = []

    def environment(self) -> dict[str, str]:
        """Return the environment of everything that is started: allaboard of this folder."""
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        return os.environ | {
            "PYTHONPATH": path,
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
            "NCCL_RAS_ADDR": f"127.0.0.1:{next(_ports)}",
        }

    def call(self, command: Sequence[str], timeout_s: float, name: str = "") -> tuple[int, str]:
        """Return exit code and output of a command, 124 after the timeout; keep the output as a file."""
        process = self.start(command)
        try:
            output, _ = process.communicate(timeout=timeout_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            self.end(process)
            output, code = process.communicate()[0], 124
        if name:
            (self.out / f"{name}.txt").write_text(output)
        return code, output

    def start(self, command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        """Start a command in a session of its own."""
        process = subprocess.Popen(
            command,
            env=self.environment() | variables,
            cwd=self.out,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """End a process and all of its session."""
        for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                break
            os.killpg(process.pid, number)
            if number is signal.SIGTERM:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    continue

    def close(self) -> None:
        """End whatever is left."""
        for process in list(self._started):
            self.end(process)

    def allaboard(self, *arguments: str) -> list[str]:
        """Return the command of allaboard with these arguments."""
        return [sys.executable, "-m", "allaboard", *arguments]

    def train(
        self,
        workers: int,
        job: str,
        *arguments: str,
        options: Sequence[str] = (),
        timeout_s: float = 120.0,
    ) -> tuple[int, str]:
        """Run one of the jobs under ``allaboard run``."""
        name = f"{Path(job).stem}-{'-'.join(arguments[1::2]) or workers}"
        where = ["--run-dir", str(self.out / name), "--grace", "5"]
        command = ["run", "-n", str(workers), *where, *options, str(JOBS / job), *arguments]
        return self.call(self.allaboard(*command), timeout_s, f"run-{name}")

    def start_ranks(
        self, size: int, job: str, *arguments: str, awaited: str = "ready", **variables: str
    ) -> list[subprocess.Popen[str]]:
        """Start the ranks of a job without allaboard, and return once each has printed the awaited word; at
        once without one."""
        meeting = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
        meeting |= {"MASTER_PORT": str(next(_ports)), "TORCH_FR_BUFFER_SIZE": "2000", **variables}
        meeting["NCCL_RAS_ADDR"] = f"127.0.0.1:{next(_ports)}"
        ranks = [
            self.start(
                [sys.executable, str(JOBS / job), *arguments],
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                **meeting,
            )
            for rank in range(size)
        ]
        self.ras = f"ras://{meeting['NCCL_RAS_ADDR']}"
        for process in ranks if awaited else ():
            for line in process.stdout or ():
                if awaited in line:
                    break
        return ranks

    def wait(self, seconds: float) -> None:
        """Let what was started go on for a while."""
        time.sleep(max(0.0, min(seconds, self.deadline - time.monotonic())))
