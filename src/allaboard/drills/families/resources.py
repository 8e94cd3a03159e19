"""Limits that run out: memory, address space, files, disk."""

from __future__ import annotations

from allaboard.contracts import Drill

# It enters that group after its first step; which group a worker is in is looked at every second or two, and
# so many steps take six seconds on the quickest machine.
LATE = ("--at-step", "1200")

DRILLS = {
    "address-space": Drill(
        title="A rank keeps a tensor of each step under a low ulimit -v",
        script="torch_slow.py",
        expects="RES003",
        inside=True,
        ends=False,
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
    "open-files": Drill(
        title="A rank opens a file in each step and closes none",
        script="torch_slow.py",
        expects="RES002",
        inside=True,
        ends=False,
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
