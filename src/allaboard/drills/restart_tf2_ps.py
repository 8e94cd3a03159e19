"""A server of a ParameterServerStrategy is killed: its chief cannot go on, so all are started again."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf2_ps.py",
    expects="PS001",
    workers=1,
    guilty=2,
    trains=0,
    options=("--ps", "1", "--chief", "--on-failure", "restart"),
    arguments=("--rounds", "100"),
    outside=kill,
    exit_codes=(0,),
    restarts=1,
)
