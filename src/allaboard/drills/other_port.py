"""A rank looks for the master at another port."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="JOIN007", inside=True, exit_codes=(3,))
