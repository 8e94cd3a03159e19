"""Ranks that are slow: in their code, their data or their share of the machine."""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path

from allaboard.contracts import Drill
from allaboard.drills.base_rows import lasting_drill

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


DRILLS = {
    "slow-code": lasting_drill(
        title="A rank does extra work in every step",
        script="torch_slow.py",
        expects="SLOW001",
    ),
    "slow-data": lasting_drill(
        title="A rank reads its data more slowly than the others",
        script="torch_slow.py",
        expects="SLOW001",
    ),
    "slow-data-everywhere": lasting_drill(
        title="All ranks wait for data most of the time",
        script="torch_slow.py",
        expects="SLOW002",
        workers=3,
        guilty=0,
        blames=(0, 1, 2),
    ),
    "slow-unseen": lasting_drill(
        title="A rank does extra work in every step, and the collectives of all return at once",
        script="torch_delayed.py",
        expects="SLOW010",
    ),
    "throttled": Drill(
        title="A rank's cgroup is limited to a fifth of a core in the middle of training",
        script="torch_slow.py",
        expects="SLOW003",
        outside=confine,
        heal=release,
        ends=False,
        allowed=("SLOW001",),
        needs=("cgroup-cpu",),
    ),
    "too-many-threads": lasting_drill(
        title="Each rank computes with more threads than its share of cores",
        script="torch_slow.py",
        expects="SLOW006",
        guilty=-1,
        fewest=3,
    ),
}
