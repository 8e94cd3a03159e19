"""A rank believes in a smaller world."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="JOIN006", inside=True, exit_codes=(3,))
