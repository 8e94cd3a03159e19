"""A rank's cgroup gets a fifth of a core in the middle of training."""

import atexit
import contextlib
import os
from pathlib import Path

from allaboard.contracts import Drill

BASE = Path("/sys/fs/cgroup/cpu")
GROUP = BASE / f"allaboard-drill-{os.getpid()}"


def confine(pid: int) -> None:
    GROUP.mkdir(exist_ok=True)
    atexit.register(remove)
    (GROUP / "cpu.cfs_period_us").write_text("100000")
    (GROUP / "cpu.cfs_quota_us").write_text("5000")
    (GROUP / "cgroup.procs").write_text(str(pid))


def release(pid: int) -> None:
    (BASE / "cgroup.procs").write_text(str(pid))


def remove() -> None:
    with contextlib.suppress(OSError):
        GROUP.rmdir()


DRILL = Drill(
    script="torch_slow.py",
    expects="SLOW003",
    outside=confine,
    heal=release,
    ends=False,
    allowed=("SLOW001",),
    needs=("cgroup-cpu",),
)
