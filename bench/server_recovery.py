"""How long from the kill of a parameter server to the next update that is applied to it.

TensorFlow 1: the same script (jobs/ps_recover.py: asynchronous, N workers in MonitoredTrainingSession, a
checkpoint on disk every 60 s) is started by `allaboard run --ps 1 -n N --on-failure restart` in several ways,
in turns whose order rotates; k rounds. Once the job has trained for a while (with a standby: once that waits;
with snapshots: once one was taken), the server is killed by SIGKILL. In seconds since the kill: `there` is
when the new server listens, `first` when the first worker has done a step with it, `all` when every
worker has. `back` is by how many steps global_step fell.

`standby` is how it is without further options; `snapshot` adds `--ps-snapshot 1`; `cold` is `--ps-standby
off`; `as TensorFlow` is that too, with TensorFlow's own wait of 30 s between two looks of a worker at the
variables (`recovery_wait_secs`), as it was before allaboard set it to 1 s.

`TensorFlow 2` is the other job (jobs/ps2_recover.py: ParameterServerStrategy, a chief and N workers, a
checkpoint after the first update and every 60 s): the chief fails with its server, a new round of all tasks
begins, and the chief restores. `first` is the first update that its coordinator sees done; who did it is
the coordinator's business, so there is no `all`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import sheet

JOB = str(sheet.JOBS / "ps_recover.py")
TF2, TF2_JOB = "TensorFlow 2", str(sheet.JOBS / "ps2_recover.py")
WAYS = {
    "standby": (),
    "snapshot": ("--ps-snapshot", "1"),
    "cold": ("--ps-standby", "off"),
    "as TensorFlow": ("--ps-standby", "off", "--env", "ALLABOARD_RECOVERY_WAIT=30"),
    TF2: ("--chief",),
}
MOMENTS = ("there", "first", "all")
LIMIT = 120.0
SETTLE = 3.0
TARGETS = {"first": 5.0}


class Job:
    """One job under allaboard, with the files that it leaves."""

    def __init__(self, folder: Path, way: str, n: int, environment: dict[str, str]) -> None:
        self.folder = folder
        self.n = 1 if way == TF2 else n
        job = TF2_JOB if way == TF2 else JOB
        words = ["run", "--run-dir", folder / "run", "--ps", 1, "-n", n, "--on-failure", "restart"]
        words += [*WAYS[way], job, "--marks", folder, "--checkpoints", folder / "checkpoints"]
        with (folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                sheet.allaboard(*words), env=environment, stdout=output, stderr=output, cwd=folder
            )

    def steps(self, worker: int) -> list[tuple[float, int]]:
        """Moment and number of each of its steps so far."""
        file = self.folder / f"steps-{worker}"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        whole = [line.split() for line in lines if line.endswith("\n")]
        return [(float(at), int(number)) for at, number in whole]

    def servers(self) -> list[dict[str, float]]:
        """Every server that came to listen, the oldest first."""
        found = []
        for file in self.folder.glob("ps-*.json"):
            try:
                found.append(json.loads(file.read_text()))
            except ValueError:  # it is being written
                continue
        return sorted(found, key=lambda s: s["server"])

    def says(self, text: str) -> bool:
        return text in (self.folder / "output").read_text(errors="replace")

    def wait(self, what: str, done: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + LIMIT
        while not done():
            if self.process.poll() is not None or time.monotonic() > deadline:
                print(f"no {what}: {(self.folder / 'output').read_text(errors='replace')[-2000:]}")
                return False
            time.sleep(0.02)
        return True

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def standby_waits(job: Job) -> bool:
    """Whether the process that waits has opened its FIFO: it imports no more."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if not any(w.endswith(b"standby.py") for w in words) or JOB.encode() not in words:
                continue
            return (process / "wchan").read_text() == "fifo_open" or _opens(process)
        except OSError:
            continue
    return False


def _opens(process: Path) -> bool:
    """The same where the kernel does not tell: openat(2) is the call that it sleeps in."""
    return (process / "syscall").read_text().split()[0] in ("257", "56")  # x86-64, arm64


def once(way: str, n: int, environment: dict[str, str]) -> dict[str, float]:
    """Seconds from the kill to each moment; infinite where it never came."""
    never = dict.fromkeys((*MOMENTS, "back"), float("inf"))
    with tempfile.TemporaryDirectory(prefix="allaboard-bench-") as folder:
        job = Job(Path(folder), way, n, environment)
        try:
            ready = job.wait("start", lambda: all(job.steps(w) for w in range(job.n)))
            if ready and way in ("standby", "snapshot"):
                ready = job.wait("standby", lambda: standby_waits(job))
            if ready and way == "snapshot":
                ready = job.wait("snapshot", lambda: job.says("a snapshot of"))
            if not ready:
                return never
            time.sleep(SETTLE)
            before = max(job.steps(w)[-1][1] for w in range(job.n))
            kill = time.time()
            os.kill(int(job.servers()[-1]["pid"]), signal.SIGKILL)

            def back() -> bool:
                new = [s for s in job.servers() if s["server"] > kill]
                last = [job.steps(w)[-1][0] for w in range(job.n)]
                return bool(new) and all(at > new[-1]["server"] for at in last)

            if not job.wait("return", back):
                return never
            there = job.servers()[-1]["server"]
            after = [next(s for s in job.steps(w) if s[0] > there) for w in range(job.n)]
        finally:
            job.end()
    found = {"there": there - kill, "first": min(after)[0] - kill}
    if way != TF2:
        found["all"] = max(after)[0] - kill
    return found | {"back": float(before - min(number for _, number in after))}


def body(rounds: list[dict[str, Any]]) -> str:
    rows = []
    for way in rounds[0]:
        for moment in (m for m in (*MOMENTS, "back") if all(m in r[way] for r in rounds)):
            seconds = sorted(r[way][moment] for r in rounds)
            middle = median(seconds)
            target = TARGETS.get(moment) if way in ("standby", "snapshot") else None
            met = None if target is None else middle <= target
            rows.append((f"{way}: {moment}", seconds[0], middle, seconds[-1], target, met))
    head = ("since the kill", "min", "median", "max", "target", "met")
    return f"Seconds (back: steps):\n\n{sheet.table(head, rows)}"


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=5, help="rounds")
    parser.add_argument("-n", type=int, default=2, help="workers")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--sheet", default="server_recovery", help="the sheet's name")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.k, "workers": options.n}
    environment = sheet.environment(options.python)
    rounds: list[dict[str, Any]] = []
    for k in range(options.k):
        turn = options.ways[k % len(options.ways) :] + options.ways[: k % len(options.ways)]
        made = {w: once(w, options.n, environment) for w in turn}
        rounds.append({w: made[w] for w in options.ways})
        print(k + 1, {w: round(m["first"], 2) for w, m in made.items()}, flush=True)
    sheet.page(options.sheet, __doc__, facts, body(rounds), options.results)
    told = {"circumstances": facts, "rounds": rounds}
    sheet.save(options.results / f"{options.sheet}.json", told)


if __name__ == "__main__":
    main()
