"""Limits that run out: memory, address space, files, disk."""

from __future__ import annotations

from allaboard.contracts import Drill
from allaboard.drills.base_rows import lasting_drill

# It enters that group after its first step; which group a worker is in is looked at every second or two, and
# so many steps take six seconds on the quickest machine.
LATE = ("--at-step", "1200")

DRILLS = {
    "address-space": lasting_drill(
        title="A rank keeps a tensor of each step under a low ulimit -v",
        script="torch_slow.py",
        expects="RES003",
    ),
    "disk-stays-full": Drill(
        title="A rank retries forever to save to a full disk while the others wait for it",
        script="torch_beside.py",
        expects="HANG026",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "75"),
        exit_codes=(4,),
        allowed=("HANG005",),
        long="a checkpoint may take a minute",
    ),
    "open-files": lasting_drill(
        title="A rank opens a file in each step and closes none",
        script="torch_slow.py",
        expects="RES002",
    ),
    "out-of-memory": Drill(
        title="A rank allocates memory until the kernel kills it in its control group",
        script="torch_ddp.py",
        expects="RES001",
        inside=True,
        arguments=LATE,
        needs=("cgroup-memory",),
    ),
}
