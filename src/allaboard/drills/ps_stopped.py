"""A parameter server of a TensorFlow 1 job is stopped by SIGSTOP; its workers hang in Session.run."""

import os
import signal

from allaboard.contracts import Drill


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


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
