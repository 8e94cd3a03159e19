"""A rank believes in a smaller world."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="JOIN006", workers=3, inside=True, exit_codes=(3,))
