"""Jobs that are started again come to the end that they would have had: real frameworks, real kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
LIMIT = 240.0


class Run:
    """One run of an example under allaboard; may be hurt while it trains."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        path = os.pathsep.join((str(BIN), os.environ["PATH"]))
        self.output = folder / "output"
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
                env={**os.environ, "PATH": path, "VIRTUAL_ENV": str(BIN.parent), "MARK": self.mark},
                stdout=sink,
                stderr=subprocess.STDOUT,
            )

    def hurt(self, worker: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends the signal to the newest process of this worker."""
        journal = (self.folder / "run/journal.jsonl").read_text()
        entries = [json.loads(line) for line in journal.splitlines() if '"kind":"worker"' in line]
        os.kill([e["pid"] for e in entries if e["worker"] == worker][-1], number)

    def wait_for(self, what: str, count: int = 1) -> None:
        deadline = time.monotonic() + LIMIT
        while len(re.findall(what, self.text)) < count and self.process.poll() is None:
            assert time.monotonic() < deadline, f"no {what} in {self.text[-3000:]}"
            time.sleep(0.05)

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
        assert left_behind(self.mark) == []
        assert not list(Path("/dev/shm").glob(f"allaboard-*-{report['job']}"))
        return report


def left_behind(mark: str) -> list[str]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARK={mark}".encode() in environ.read_bytes().split(b"\0"):
                found.append(environ.parent.name)
        except OSError:
            continue
    return found


def loss(run: Run) -> str:
    found = re.search(r"after step \d+: loss ([0-9.]+)", run.text)
    assert found is not None, run.text[-3000:]
    return found[1]


@pytest.mark.zoo
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("script", "option", "steps"),
    [
        ("torch_checkpoint.py", "--checkpoint", "300"),
        # TensorFlow takes three times as long to start, twice.
        pytest.param("tf_checkpoint.py", "--folder", "200", marks=pytest.mark.long),
    ],
)
def test_the_result_is_that_of_a_run_that_never_failed(
    tmp_path: Path, script: str, option: str, steps: str
) -> None:
    words = ("-n", "2", "--on-failure", "restart", f"examples/{script}", "--steps", steps)
    well = Run(tmp_path / "well", *words, option, str(tmp_path / "a"))
    assert well.end()["restarts"] == 0
    hurt = Run(tmp_path / "hurt", *words, option, str(tmp_path / "b"), "--pause", "0.01")
    hurt.wait_for("step  100 ")
    hurt.hurt(1)
    report = hurt.end()
    assert report["restarts"] == 1
    assert "going on after step 100" in hurt.text
    assert loss(hurt) == loss(well)
    if script.startswith("torch"):  # whose optimizer numbers its steps
        first, second = report["rounds"]
        assert second["first"] == 101
        assert second["repeated"] == first["steps"] - 100


SOAK = 1200.0
"""Seconds of kills and stops, and as many for the end after them."""
STEPS = 9000


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1])
def test_a_long_schedule_of_kills_and_stops_of_ranks(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    words = ("-n", "2", "--on-failure", "restart", "--max-restarts", "500", "--stopped-after", "3")
    job = ("examples/torch_checkpoint.py", "--every", "20", "--batch-size", "8")
    well = Run(
        tmp_path / "well", *words, *job, "--steps", str(STEPS), "--checkpoint", str(tmp_path / "a")
    )
    well.end()
    hurt = Run(
        tmp_path / "hurt",
        *(
            *words,
            *job,
            "--steps",
            str(STEPS),
            "--checkpoint",
            str(tmp_path / "b"),
            "--pause",
            "0.05",
        ),
    )
    done = schedule(hurt, chance, SOAK, workers=(0, 1))
    report = hurt.end(SOAK)
    assert done - 1 <= report["restarts"] <= done  # the last may come when all is over
    assert loss(hurt) == loss(well)
    assert all(r["repeated"] is not None and r["repeated"] <= 20 for r in report["rounds"][1:])


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1])
def test_a_long_schedule_of_kills_and_stops_of_servers_and_workers(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    words = ("--ps", "2", "-n", "2", "--on-failure", "restart", "--max-restarts", "500")
    run = Run(
        tmp_path / "hurt",
        *(*words, "--stopped-after", "3", "examples/tf1_ps_digits.py", "--steps", "60000"),
        *("--checkpoints", str(tmp_path / "checkpoints")),
    )
    done = schedule(run, chance, SOAK, workers=(1, 2, 3))
    report = run.end(SOAK)
    assert done - 1 <= len(report["returns"]) <= done
    found = re.search(r"test accuracy ([0-9.]+)", run.text)
    assert found is not None and float(found[1]) > 0.9  # as a run that never failed


def schedule(run: Run, chance: random.Random, seconds: float, workers: tuple[int, ...]) -> int:
    """Hurts one of them now and then, after the job has come back from the time before; how often."""
    run.wait_for("aboard after")
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end and run.process.poll() is None:
        seen = len(re.findall(r"step +\d+  loss", run.text))
        run.wait_for(r"step +\d+  loss", seen + 2)
        time.sleep(chance.uniform(0, 3))
        with contextlib.suppress(ProcessLookupError):  # it may just have ended
            run.hurt(chance.choice(workers), chance.choice([signal.SIGKILL, signal.SIGSTOP]))
            done += 1
            run.wait_for(r"round \d+ starts|starts again", done)
    return done
