"""One rank alone gets a SIGINT, as from another terminal."""

import os
import signal

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT008",
    outside=lambda pid: os.kill(pid, signal.SIGINT),
)
