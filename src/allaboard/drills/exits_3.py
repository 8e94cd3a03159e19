"""A rank ends with exit code 3 and no exception."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="EXIT003", inside=True)
