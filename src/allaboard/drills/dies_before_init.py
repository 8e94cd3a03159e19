"""A rank raises before init."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="JOIN003", inside=True, exit_codes=(3,))
