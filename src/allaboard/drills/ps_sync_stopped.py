"""A worker of a synchronous job is stopped by SIGSTOP; the other waits for its gradient."""

from allaboard.contracts import Drill
from allaboard.launch.signals import go_on, stop

DRILL = Drill(
    script="tf1_ps.py",
    expects="HANG001",
    workers=2,
    guilty=1,
    trains=0,
    options=("--ps", "1", "--on-hang", "stop"),
    outside=stop,
    heal=go_on,
    arguments=("--sync",),
    exit_codes=(4,),
)
