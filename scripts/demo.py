"""`make demo`: a job that trains, one that is stopped in the middle, one that cannot meet.

Everything is real: PyTorch DDP and TensorFlow's MultiWorkerMirroredStrategy train on scikit-learn's
digits. The faults are a SIGSTOP and a wrong port, and nobody tells allaboard about them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = [sys.executable, "-m", "allaboard", "run"]
TARGET = 2
"""The worker that is stopped."""


def main() -> int:
    codes = [train(), stop_one(), wrong_port()]
    wanted = [0, 4, 3]
    print()
    if codes != wanted:
        print(f"demo: exit codes {codes}, expected {wanted}: please report this", file=sys.stderr)
        return 1
    print(
        "That was all: trained (exit 0), a hang named and ended (exit 4), a start refused (exit 3)."
    )
    print("Next: .venv/bin/allaboard run -n 4 YOUR_SCRIPT.py, and .venv/bin/allaboard drill")
    return 0


def train() -> int:
    command = [*RUN, "-n", "4", "examples/torch_digits.py"]
    title("1. Four workers train a digit classifier with PyTorch DDP.", command)
    return subprocess.call(command, cwd=ROOT)


def stop_one() -> int:
    """The same job, longer; worker 2 is stopped as soon as it has trained a while."""
    with tempfile.TemporaryDirectory(prefix="allaboard-demo-") as folder:
        options = ["-n", "4", "--on-hang", "stop", "--grace", "3", "--run-dir", folder]
        command = [*RUN, *options, "examples/torch_digits.py", "--epochs", "2000"]
        title(f"2. The same job; after a while worker {TARGET} gets a SIGSTOP.", command)
        job = subprocess.Popen(command, cwd=ROOT)
        pid = trains(Path(folder), job)
        if pid:
            print(
                f"\n>>> kill -STOP {pid}   (worker {TARGET}; nobody tells allaboard)\n", flush=True
            )
            os.kill(pid, signal.SIGSTOP)
        return job.wait()


def trains(folder: Path, job: subprocess.Popen[bytes]) -> int:
    """The pid of the target, once rank 0 has printed a few epochs."""
    log = folder / "logs" / "worker-0.log"
    while job.poll() is None:
        time.sleep(0.2)
        if log.exists() and log.read_text(errors="replace").count("epoch") >= 8:
            entries = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
            return next(e["pid"] for e in entries if e.get("worker") == TARGET)
    return 0


def wrong_port() -> int:
    command = [*RUN, "-n", "3", "--grace", "3", "examples/broken/tf_wrong_port.py"]
    title(
        "3. MultiWorkerMirroredStrategy; worker 1's TF_CONFIG has a wrong port for worker 0.",
        command,
    )
    return subprocess.call(command, cwd=ROOT)


def title(text: str, command: list[str]) -> None:
    shown = " ".join(["allaboard", *command[3:]])
    print(f"\n{'-' * 88}\n{text}\n$ {shown}\n{'-' * 88}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
