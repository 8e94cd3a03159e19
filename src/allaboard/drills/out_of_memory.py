"""A rank eats memory until the kernel kills it in its control group."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="RES001", inside=True, needs=("cgroup-memory",))
