"""A parameter server of a TensorFlow 1 job is stopped by SIGSTOP; its workers hang in Session.run."""

from allaboard.contracts import Drill
from allaboard.launch.signals import go_on, stop

DRILL = Drill(
    script="tf1_ps.py",
    expects="HANG001",
    workers=2,
    guilty=2,
    trains=0,
    options=("--ps", "1", "--on-hang", "stop"),
    outside=stop,
    heal=go_on,
    exit_codes=(4,),
)
