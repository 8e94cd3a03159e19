"""The store of an earlier run of the same job is still open, and all of its clients have joined."""

import sys
import time

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed import Bed

OLD = f"""
import time
from torch.distributed import TCPStore
stores = [TCPStore("127.0.0.1", {MEETING_PORT}, 1, i == 0) for i in range(4)]
print("complete", flush=True)
time.sleep(600)
"""


def leave_one(bed: Bed) -> None:
    old = bed.start("h0", [sys.executable, "-c", OLD])
    for _ in range(300):
        if "complete" in old.text():
            return
        time.sleep(0.1)


DRILL = HostDrill(
    framework="torch",
    expects="JOIN008",
    blames=(1,),
    on=(1,),
    arrange=leave_one,
)
