"""A rank keeps a tensor of each step, below a low ulimit -v."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_slow.py",
    expects="RES003",
    inside=True,
    ends=False,
)
