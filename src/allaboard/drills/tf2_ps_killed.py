"""A parameter server of a ParameterServerStrategy is killed by SIGKILL; the chief ends."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf2_ps.py",
    expects="PS001",
    workers=1,
    guilty=2,
    trains=0,
    options=("--ps", "1", "--chief"),
    outside=kill,
)
