"""Jobs under allaboard that are hurt while they train: real frameworks, real signals."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LIMIT = 240.0
WITHOUT_JAX = ROOT / "tests/without_jax"
"""Folder that hides JAX from jobs that have it in PYTHONPATH."""


def is_of_tensorflow(words: Sequence[str]) -> bool:
    """Return True if one of these words is an example of TensorFlow."""
    return any(word.startswith("examples/tf") for word in words)


class Run:
    """One run of an example under allaboard; may be hurt while it trains."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        path = os.pathsep.join((str(BIN), os.environ["PATH"]))
        self.output = folder / "output"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.mark = f"restart-{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
        with self.output.open("wb") as sink:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "allaboard",
                    "run",
                    "--run-dir",
                    str(folder / "run"),
                    *words,
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PATH": path,
                    "VIRTUAL_ENV": str(BIN.parent),
                    **({"PYTHONPATH": str(WITHOUT_JAX)} if is_of_tensorflow(words) else {}),
                    "MARK": self.mark,
                    "TMPDIR": str(self.temporary),
                },
                stdout=sink,
                stderr=subprocess.STDOUT,
            )

    def hurt(self, worker: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends the signal to the newest process of this worker."""
        os.kill(self.newest(worker), number)

    def newest(self, worker: int) -> int:
        """The pid of the process that is this worker now, or was the last to be it."""
        journal = (self.folder / "run/journal.jsonl").read_text()
        entries = [json.loads(line) for line in journal.splitlines() if '"kind":"worker"' in line]
        found: int = [e["pid"] for e in entries if e["worker"] == worker][-1]
        return found

    def wait_for(self, what: str, count: int = 1) -> None:
        deadline = time.monotonic() + LIMIT
        while len(re.findall(what, self.text)) < count and self.process.poll() is None:
            assert time.monotonic() < deadline, f"no {what} in {self.text[-3000:]}"
            time.sleep(0.05)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def end(self, limit: float = LIMIT) -> dict[str, Any]:
        """Its report, once it has ended well and left nothing behind."""
        try:
            self.process.wait(limit)
        finally:
            self.process.terminate()  # nothing where it has ended
        assert self.process.wait(60) == 0, self.text[-6000:]
        report: dict[str, Any] = json.loads((self.folder / "run/report.json").read_text())
        left_over = left_behind(self.mark)
        assert left_over == [], left_over
        assert not list(Path("/dev/shm").glob(f"*{report['job']}*"))
        # TensorFlow's own, of a process that was killed, and PyTorch's cache of compiled code.
        own = ("__autograph_generated_file", "torchinductor_")
        cache = self.temporary / "__pycache__"
        there = [p for p in self.temporary.iterdir() if p != cache]
        files = [p.name for p in (*there, *cache.glob("*")) if not p.name.startswith(own)]
        assert files == [], files
        ports = [port for port in self.ports if answers(port)]
        assert ports == [], ports
        return report

    @property
    def ports(self) -> set[int]:
        """Those on which the tasks of the job listened, in any round."""
        journal = (self.folder / "run/journal.jsonl").read_text()
        return {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", journal)}


def left_behind(mark: str) -> list[str]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARK={mark}".encode() in environ.read_bytes().split(b"\0"):
                command = (environ.parent / "cmdline").read_bytes().replace(b"\0", b" ")
                found.append(f"{environ.parent.name} {command.decode(errors='replace')[:200]}")
        except OSError:
            continue
    return found


def answers(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1.0)
        return one.connect_ex(("127.0.0.1", port)) == 0


class Hurtable(Protocol):
    """A job whose tasks can be hurt by their numbers."""

    @property
    def text(self) -> str: ...

    @property
    def ended(self) -> bool: ...

    def wait_for(self, what: str, count: int = 1) -> None: ...

    def hurt(self, worker: int, number: signal.Signals) -> None: ...

    def newest(self, worker: int) -> int: ...


class Fault(NamedTuple):
    """What was done to whom."""

    worker: int
    number: signal.Signals


def schedule(
    run: Hurtable, chance: random.Random, seconds: float, workers: tuple[int, ...]
) -> list[Fault]:
    """Kills or stops one of them now and then, after another process has taken the place of the one before:
    for so long, and twice at least; what was done."""
    run.wait_for("ready after")
    end, done = time.monotonic() + seconds, list[Fault]()
    while (time.monotonic() < end or len(done) < 2) and not run.ended:
        seen = len(re.findall(r"step +\d+  loss", run.text))
        run.wait_for(r"step +\d+  loss", seen + 2)
        time.sleep(chance.uniform(0, 3))
        one = Fault(chance.choice(workers), chance.choice([signal.SIGKILL, signal.SIGSTOP]))
        with contextlib.suppress(ProcessLookupError):  # it may just have ended
            pid = run.newest(one.worker)
            run.hurt(*one)
            done.append(one)
            deadline = time.monotonic() + LIMIT
            while run.newest(one.worker) == pid and not run.ended:
                assert time.monotonic() < deadline, f"nobody in place of {pid}: {run.text[-3000:]}"
                time.sleep(0.05)
    return done
