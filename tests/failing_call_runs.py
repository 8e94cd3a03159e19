"""Small jobs of plain Python under an agent one of whose system calls fails, and what must hold of each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from host_runs import files_left_behind
from hurt import left_behind

INJECTOR = Path(__file__).with_name("failing_calls")
LIMIT_S = 120.0
"""Seconds for one run on a busy machine."""
WORKER = """\
import os, pathlib, sys, time
rank = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RANK", "0")
print("begins", rank, flush=True)
for step in range(12):
    time.sleep(0.1)
pathlib.Path(os.environ["DONE"], os.environ["RANK"]).write_text("done")
print("done", rank, flush=True)
"""
FAILING_WORKER = WORKER.replace(
    "pathlib.Path", "if rank == '1': raise SystemExit('no such file: data/train.bin')\npathlib.Path"
)


class Job(NamedTuple):
    """A job that is run again and again."""

    script: str
    """Text of the program that both workers run."""
    options: tuple[str, ...] = ()
    """Options of ``allaboard run``."""
    code: int = 0
    """Exit code if no call fails."""


JOBS = {
    "ends well": Job(WORKER, ("--report", "report.json")),
    "one worker fails": Job(FAILING_WORKER, (), 1),
    "one worker fails twice": Job(
        FAILING_WORKER, ("--on-failure", "restart", "--max-restarts", "1"), 1
    ),
    "starts warm, one worker fails twice": Job(
        FAILING_WORKER, ("--warm", "--on-failure", "restart", "--max-restarts", "1"), 1
    ),
}


class FailingCall(NamedTuple):
    """Which call of the agent fails."""

    place: str
    skip: int = 0
    is_lasting: bool = False


class Outcome(NamedTuple):
    """What was seen of one run."""

    code: int | None
    """Exit code; None if the run had not ended in time."""
    text: str
    """Standard output and standard error."""
    places: tuple[str, ...]
    """Places that made a call, in the order in which they first did."""
    has_failed: bool
    """True if the call was made, and failed."""
    done: int
    """Workers that came to their end."""
    left: tuple[str, ...]
    """Processes and files that were left behind."""
    workers: int = 2
    """Workers of the agent."""


def run_job(
    folder: Path, job: Job, call: FailingCall, before: str = "", within: tuple[str, ...] = ()
) -> Outcome:
    """Run the job once in this new folder while this call fails.

    ``before`` is what a shell does before it becomes the agent; ``within`` is the command that starts that
    shell.
    """
    for name in ("done", "tmp", "work"):
        (folder / name).mkdir(parents=True)
    (folder / "work/train.py").write_text(job.script)
    log, output = folder / "calls", folder / "output"
    mark = f"{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
    settings = {"log": str(log), **call._asdict()}
    environment = {
        **{n: v for n, v in os.environ.items() if not n.startswith("PYTEST")},
        "PYTHONPATH": str(INJECTOR),
        "FAILING_CALLS": json.dumps(settings),
        "MARK": mark,
        "DONE": str(folder / "done"),
        "TMPDIR": str(folder / "tmp"),
    }
    words = ["run", "-n", "2", "--run-dir", str(folder / "run"), *job.options, "train.py"]
    command = [sys.executable, "-m", "allaboard", *words]
    if before:
        command = [*within, "bash", "-c", f'{before}\nexec "$@"', "bash", *command]
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=folder / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        code: int | None
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
            process.kill()
            process.wait()
    left = _left_behind(folder, mark)
    places, has_failed = read_log(log, call)
    done = len(list((folder / "done").iterdir()))
    return Outcome(code, output.read_text(errors="replace"), places, has_failed, done, left)


def read_log(log: Path, call: FailingCall) -> tuple[tuple[str, ...], bool]:
    """Return the places that made a call, in the order in which they first did, and if this one failed."""
    lines = log.read_text().splitlines() if log.exists() else []
    places = dict.fromkeys(line for line in lines if not line.startswith("failed "))
    return tuple(places), f"failed {call.place}" in lines


def _left_behind(folder: Path, mark: str) -> tuple[str, ...]:
    """Return the processes and files of the run that are still there."""
    deadline = time.monotonic() + 5.0
    # The guard ends right after the agent, which does not always wait for it.
    while (processes := left_behind(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return (*processes, *files_left_behind(folder))


def violations(outcome: Outcome, has_output: bool = True) -> list[str]:
    """Return what does not hold although it must, whatever failed.

    Without ``has_output`` there is no place where something could be said.
    """
    wrong = []
    text, code = outcome.text, outcome.code
    if code is None:
        wrong.append("it did not end")
    elif code not in (0, 1, 2, 3, 4):
        wrong.append(f"exit code {code}")
    if "Traceback (most recent call last)" in text:
        wrong.append("a traceback is shown")
    if "internal error" in text:
        wrong.append("an expected error counts as an internal one")
    workers = outcome.workers
    if code == 0 and outcome.done != workers:
        wrong.append(f"exit code 0, and {outcome.done} of {workers} workers came to their end")
    if has_output and code and not re.search(r"(?m)^allaboard", text):
        wrong.append("nothing is said of the end")
    if has_output and code == 0 and text.count("done ") != workers and "not shown here" not in text:
        wrong.append("output of the workers is lost, and nothing says so")
    wrong += [f"left behind: {what}" for what in outcome.left]
    return wrong
