"""A rank eats memory until the kernel kills it in its control group."""

from allaboard.contracts import Drill

# It enters that group after its first step; which group a worker is in is looked at every second or two, and
# so many steps take six seconds on the quickest machine.
LATE = ("--at-step", "1200")
DRILL = Drill(
    script="torch_ddp.py",
    expects="RES001",
    inside=True,
    arguments=LATE,
    needs=("cgroup-memory",),
)
