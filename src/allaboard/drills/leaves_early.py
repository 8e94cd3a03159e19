"""A rank ends with exit code 0 while the others train."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="EXIT004", inside=True)
