"""A rank is stopped, not dead, and nobody lets it go on; it is replaced, and the training ends well."""

from allaboard.contracts import Drill
from allaboard.launch.signals import go_on, stop

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG001",
    outside=stop,
    heal=go_on,
    arguments=("--steps", "150"),
    options=("--on-failure", "restart", "--stopped-after", "3"),
    exit_codes=(0,),
    restarts=1,
)
