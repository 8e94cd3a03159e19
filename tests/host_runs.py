"""``allaboard run`` as each host of a small job starts it, all on this one; the workers use `small_torch`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hurt import left_behind

SMALL_TORCH = Path(__file__).with_name("small_torch")
TRAINING = """\
import os, pathlib, time
import torch.distributed as dist
dist.init_process_group("gloo")
print("begins", os.environ["RANK"], flush=True)
for step in range(int(os.environ.get("STEPS", "10"))):
    dist.barrier()
    time.sleep(0.1)
pathlib.Path(os.environ["DONE"], os.environ["RANK"]).write_text("done")
print("done", os.environ["RANK"], flush=True)
"""
TIMEOUT_S = 120.0
"""Seconds for one run on a busy machine."""


class HostRun:
    """The run of one rank, which is its own host, in a folder of its own.

    ``options`` are those of ``allaboard run``; without allaboard if they are None.
    """

    def __init__(
        self,
        folder: Path,
        rank: int,
        size: int,
        port: int,
        options: Sequence[str] | None = (),
        variables: Mapping[str, str] = {},
        path: Sequence[Path] = (),
        script: str = TRAINING,
    ) -> None:
        self.folder = folder / f"host{rank}"
        self.done = folder / "done" / str(rank)
        for path_to_make in (self.folder / "work", self.folder / "tmp", folder / "done"):
            path_to_make.mkdir(parents=True, exist_ok=True)
        (self.folder / "work/train.py").write_text(script)
        self.mark = f"{folder.name}-{rank}-{os.getpid()}-{time.monotonic_ns()}"
        environment = {
            **{n: v for n, v in os.environ.items() if not n.startswith("PYTEST")},
            "PYTHONPATH": os.pathsep.join(str(p) for p in (*path, SMALL_TORCH)),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "RANK": str(rank), "WORLD_SIZE": str(size),
            "MARK": self.mark, "DONE": str(folder / "done"), "TMPDIR": str(self.folder / "tmp"),
            **variables,
        }  # fmt: skip
        command = [sys.executable, "train.py"]
        if options is not None:
            words = ["run", "--run-dir", str(self.folder / "run"), *options, "train.py"]
            command = [sys.executable, "-m", "allaboard", *words]
        with (self.folder / "output").open("wb") as sink:
            self.process = subprocess.Popen(
                command, cwd=self.folder / "work", env=environment,
                stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def text(self) -> str:
        """Standard output and standard error."""
        return (self.folder / "output").read_text(errors="replace")

    def wait(self, timeout_s: float = TIMEOUT_S) -> int | None:
        """Return the exit code; None if it had not ended in time and was killed."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def left_behind(self) -> tuple[str, ...]:
        """Return the processes and files of the run that are still there."""
        deadline = time.monotonic() + 5.0
        # The guard ends right after the agent, which does not always wait for it.
        while (processes := left_behind(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return (*processes, *files_left_behind(self.folder))


def files_left_behind(folder: Path) -> list[str]:
    """Return the files outside of the run folder that a run in this folder has left."""
    journal = folder / "run/journal.jsonl"
    jobs = re.findall(r'"job":"([\w-]+)"', journal.read_text()) if journal.exists() else []
    memory = [str(p) for job in set(jobs) for p in Path("/dev/shm").glob(f"*{job}*")]
    return [*memory, *(str(p) for p in (folder / "tmp").iterdir())]
