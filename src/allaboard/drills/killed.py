"""A rank is killed by SIGKILL in the middle of training."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(script="torch_ddp.py", expects="EXIT001", outside=kill)
