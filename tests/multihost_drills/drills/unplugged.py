"""A host that waits in the roll call loses its cable, without a word."""

import threading
import time
from pathlib import Path

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed import Bed

ESTABLISHED = "01"
"""In /proc/net/tcp, proc_pid_net(5)."""


def arrange(bed: Bed) -> None:
    threading.Thread(target=_cut, args=(bed,), daemon=True).start()


def _cut(bed: Bed) -> None:
    """Once it has come to the meeting."""
    table = Path(f"/proc/{bed.first('h1')}/net/tcp")
    meeting = f":{MEETING_PORT:04X}"
    try:
        while not any(
            row.split()[2].endswith(meeting) and row.split()[3] == ESTABLISHED
            for row in table.read_text().splitlines()[1:]
        ):
            time.sleep(0.2)
        time.sleep(2.0)
        bed.unplug("h1")
    except (OSError, KeyError):
        pass  # the bed has gone


DRILL = HostDrill(
    framework="torch",
    hosts=3,
    expects="JOIN003",
    blames=(1,),
    on=(0,),
    arrange=arrange,
    absent=(2,),
    options=("--timeout", "30"),
    within=20.0,
    allowed=("NET003", "NET004"),
)
