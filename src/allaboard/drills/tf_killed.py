"""A TensorFlow worker is killed by SIGKILL in the middle of training."""

import os
import signal

from allaboard.contracts import Drill


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


DRILL = Drill(script="tf_mwms.py", expects="EXIT001", outside=kill)
