"""A parameter server of a TensorFlow 1 job is killed by SIGKILL; its workers would hang in silence."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS001",
    workers=2,
    guilty=2,
    trains=0,
    options=("--ps", "1"),
    outside=kill,
)
