"""A parameter server of a TensorFlow 1 job is killed by SIGKILL; its workers would hang in silence."""

import os
import signal

from allaboard.contracts import Drill


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


DRILL = Drill(
    script="tf1_ps.py",
    expects="PS001",
    workers=2,
    guilty=2,
    trains=0,
    options=("--ps", "1"),
    outside=kill,
)
