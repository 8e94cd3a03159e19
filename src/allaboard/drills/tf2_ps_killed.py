"""A parameter server of a ParameterServerStrategy is killed by SIGKILL; the chief ends."""

import os
import signal

from allaboard.contracts import Drill


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


DRILL = Drill(
    script="tf2_ps.py",
    expects="PS001",
    workers=1,
    guilty=2,
    trains=0,
    options=("--ps", "1", "--chief"),
    outside=kill,
)
