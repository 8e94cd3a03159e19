"""A parameter server of TensorFlow 1 without checkpoints is killed; it comes back empty, and all is lost."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS014",
    workers=1,
    guilty=1,
    trains=0,
    arguments=("--steps", "300"),
    options=("--ps", "1", "--on-failure", "restart"),
    outside=kill,
    exit_codes=(0,),
    returns=1,
    allowed=("PS001",),
    long="restart-ps makes the same run, and allows the finding",
)
