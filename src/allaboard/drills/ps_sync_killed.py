"""A worker of a synchronous job is killed by SIGKILL; the chief waits for its gradient."""

import os
import signal

from allaboard.contracts import Drill


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


DRILL = Drill(
    script="tf1_ps.py",
    expects="EXIT001",
    workers=2,
    guilty=1,
    trains=0,
    options=("--ps", "1"),
    outside=kill,
    arguments=("--sync",),
)
