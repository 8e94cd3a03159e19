"""A parameter server of a ParameterServerStrategy is stopped by SIGSTOP; the chief hangs in join."""

from allaboard.contracts import Drill
from allaboard.launch.signals import go_on, stop

DRILL = Drill(
    script="tf2_ps.py",
    expects="HANG001",
    workers=1,
    guilty=2,
    trains=0,
    options=("--ps", "1", "--chief", "--on-hang", "stop"),
    outside=stop,
    heal=go_on,
    exit_codes=(4,),
)
