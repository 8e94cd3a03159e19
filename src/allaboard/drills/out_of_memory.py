"""A rank eats memory until the kernel kills it in its control group."""

from allaboard.contracts import Drill

# It enters that group after its first step; which group a worker is in is looked at once a second.
LATE = ("--at-step", "400")
DRILL = Drill(
    script="torch_ddp.py",
    expects="RES001",
    inside=True,
    arguments=LATE,
    needs=("cgroup-memory",),
)
