"""A parameter server of TensorFlow 1 is stopped, not dead, and nobody lets it go on; it is replaced."""

from allaboard.contracts import Drill
from allaboard.launch.signals import go_on, stop

DRILL = Drill(
    script="tf1_ps.py",
    expects="HANG001",
    workers=1,
    guilty=1,
    trains=0,
    arguments=("--steps", "300"),
    options=("--ps", "1", "--on-failure", "restart", "--stopped-after", "3"),
    outside=stop,
    heal=go_on,
    exit_codes=(0,),
    returns=1,
    allowed=("PS014",),
    long="restart-ps stages the return of a server, restart-stopped the patience",
)
