"""A parameter server of a ParameterServerStrategy is stopped by SIGSTOP; the chief hangs in join."""

import os
import signal

from allaboard.contracts import Drill


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


DRILL = Drill(
    script="tf2_ps.py",
    expects="HANG001",
    workers=1,
    guilty=2,
    trains=0,
    options=("--ps", "1", "--chief", "--on-hang", "stop"),
    outside=stop,
    heal=go_on,
    exit_codes=(4,),
)
