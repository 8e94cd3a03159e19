"""A rank is killed in the middle of training; all are started again, and the training comes to its end."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT001",
    outside=kill,
    arguments=("--steps", "150"),
    options=("--on-failure", "restart"),
    exit_codes=(0,),
    restarts=1,
)
