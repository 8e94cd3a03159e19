"""A worker of a ParameterServerStrategy is killed; it comes back alone, and the chief goes on with it."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf2_ps.py",
    expects="EXIT001",
    workers=1,
    guilty=1,
    trains=0,
    options=("--ps", "1", "--chief", "--on-failure", "restart"),
    arguments=("--rounds", "100"),
    outside=kill,
    exit_codes=(0,),
    returns=1,
    long="two starts of TensorFlow; restart-tf2-ps stages TensorFlow 2",
)
