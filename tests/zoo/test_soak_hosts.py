"""As `test_soak`, with each task on a host of its own: its own agent starts it again, at the word of the host
that decides, and TensorFlow 1's servers get their values through the network. All hosts tell the same.
"""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from test_soak import LOSS, STEPS, accounted, accounted_by_round, explained, said

from bedded import need
from hosted import Hosted
from hurt import left_behind, schedule
from testbed import Bed, CommandFailed

SECONDS = 45.0
"""Of kills and stops of each job: with its start and its end it takes less than 3 minutes."""
ROLES = {"tf1": ("worker", "worker", "ps"), "tf2": ("chief", "worker", "worker", "ps")}
TASKS = {
    "tf1": ("worker 0", "worker 1", "ps 0"),
    "tf2": ("chief 0", "worker 0", "worker 1", "ps 0"),
}
WORDS = {
    "tf1": ("examples/tf1_ps_digits.py", "--lr", "2e-4", "--pause", "0.05"),
    "tf2": ("examples/tf_ps_digits.py", "--pause", "0.3"),
}
RESTART = ("--on-failure", "restart", "--max-restarts", "500", "--stopped-after", "3")
OPTIONS = {"tf1": (*RESTART, "--ps-snapshot", "1", "--ps-standby", "on"), "tf2": RESTART}
LISTENS = "0A"
"""In /proc/net/tcp."""
OFTEN = 0.02


class Heard:
    """The job as one: what its tasks print, in the order in which it came, behind their names."""

    def __init__(self, job: Hosted, tasks: tuple[str, ...]) -> None:
        self._job = job
        self._tasks = tasks
        self._known = [0] * len(tasks)
        self._lines: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def hurt(self, worker: int, number: signal.Signals) -> None:
        try:
            self._job.hurt(worker, number)
        except CommandFailed as error:
            raise ProcessLookupError(str(error)) from None

    def newest(self, worker: int) -> int:
        return self._job.newest(worker)

    @property
    def ended(self) -> bool:
        return any(p.poll() is not None for p in self._job.processes)

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def wait_for(self, what: str, count: int = 1) -> None:
        deadline = time.monotonic() + 150
        while len(re.findall(what, self.text)) < count and not self.ended:
            assert time.monotonic() < deadline, f"no {what} in {self.text[-3000:]}"
            time.sleep(OFTEN)

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._over.wait(OFTEN):
            self._hear()
        self._hear()

    def _hear(self) -> None:
        for host, task in enumerate(self._tasks):
            text = self._job.text(host)[self._known[host] :]
            whole, end, _ = text.rpartition("\n")
            self._known[host] += len(whole) + len(end)
            lines = re.sub(r"^\[\d+\]", f"[{task}]", whole, flags=re.MULTILINE)
            self._lines += lines.splitlines()


def left_over(bed: Bed, job: Hosted, mark: str) -> list[str]:
    """Processes, listeners and shared memory on the hosts of a job that has ended."""
    found = left_behind(mark)
    for host in job.hosts:
        for file in ("tcp", "tcp6"):
            table = Path(f"/proc/{bed.first(host)}/net/{file}").read_text().splitlines()[1:]
            found += [f"{host} {line}" for line in table if line.split()[3] == LISTENS]
        found += [f"{host} {one}" for one in bed.path(host, "/dev/shm").iterdir()]
    return found


def soak(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """One job over hosts with the schedule of this seed; the report of the host that decides."""
    need()
    tasks = TASKS[name]
    words = (*WORDS[name], *STEPS[name])
    if name == "tf2":
        words = (*words, "--checkpoints", str(folder / "checkpoints"))
    with Bed(len(tasks), lifetime=580) as bed, pytest.MonkeyPatch.context() as patch:
        mark = f"soak-{folder.name}-{time.monotonic_ns()}"
        temporary = folder / "tmp"
        temporary.mkdir()
        patch.setenv("MARK", mark)
        patch.setenv("TMPDIR", str(temporary))
        job = Hosted(bed, "tensorflow", words, OPTIONS[name], roles=ROLES[name])
        heard = Heard(job, tasks)
        try:
            if name == "tf1":
                heard.wait_for("a snapshot of")
            done = schedule(heard, random.Random(seed), SECONDS, tuple(range(len(tasks))))
            told = job.end()
        finally:
            heard.close()
        for index, (code, report) in enumerate(told):
            assert (code, report["outcome"]) == (0, "completed"), job.text(index)[-3000:]
        first, *others = (report for _, report in told)
        for other in others:
            assert other["returns"] == first["returns"], (other["returns"], first["returns"])
            assert [r["cause"] for r in other["rounds"]] == [r["cause"] for r in first["rounds"]]
        assert len(done) >= 2
        explained(first, [said(tasks, fault) for fault in done])
        found = re.search(r"test accuracy [0-9.]+, loss ([0-9.]+)", heard.text)
        assert found is not None, heard.text[-3000:]
        low, high = LOSS[name]
        assert low - (high - low) <= float(found[1]) <= high + (high - low)
        if name == "tf1":
            accounted(heard.text, first, None)
        else:
            accounted_by_round(first)
        assert left_over(bed, job, mark) == []
    return first


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("name", TASKS)
def test_a_schedule_of_kills_and_stops_on_several_hosts(
    tmp_path: Path, name: str, seed: int
) -> None:
    soak(tmp_path, name, seed)
