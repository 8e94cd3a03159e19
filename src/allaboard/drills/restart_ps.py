"""A parameter server of TensorFlow 1 is killed; it comes back at its own address, and no worker is started
again: their sessions find it, and the training comes to its end. Nobody waits in its stead: it would be back
before there is anything to say."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS001",
    workers=1,
    guilty=1,
    trains=0,
    arguments=("--steps", "300"),
    options=("--ps", "1", "--on-failure", "restart", "--ps-standby", "off"),
    outside=kill,
    exit_codes=(0,),
    returns=1,
    allowed=("PS014",),
)
