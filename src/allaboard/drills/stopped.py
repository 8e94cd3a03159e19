"""A rank is stopped by SIGSTOP in the middle of training."""

import os
import signal

from allaboard.contracts import Drill


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG001",
    outside=stop,
    heal=go_on,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
