"""A rank is stopped by SIGSTOP in the middle of training."""

from allaboard.contracts import Drill
from allaboard.launch.signals import go_on, stop

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG001",
    outside=stop,
    heal=go_on,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
