"""A rank opens a file in each step and closes none."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_slow.py",
    expects="RES002",
    inside=True,
    ends=False,
)
