"""A rank raises in the middle of training."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="EXIT002", inside=True)
