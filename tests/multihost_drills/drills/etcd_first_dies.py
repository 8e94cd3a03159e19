"""Hosts find each other in an etcd; the one that leads loses its cable while they wait for the last."""

import threading
import time
from pathlib import Path

from multihost_drills.contract import HostDrill
from testbed import Bed, etcd

SERVICE = "h3"
ESTABLISHED = "01"
"""In /proc/net/tcp, proc_pid_net(5)."""


def arrange(bed: Bed) -> None:
    etcd.Etcd(bed, SERVICE)
    threading.Thread(target=_cut, args=(bed,), daemon=True).start()


def _cut(bed: Bed) -> None:
    """Once two other hosts have come to it."""
    table = Path(f"/proc/{bed.first('h0')}/net/tcp")
    etcd_itself = f":{etcd.PORT:04X}"
    try:
        while True:
            rows = [row.split() for row in table.read_text().splitlines()[1:]]
            theirs = {r[2] for r in rows if r[3] == ESTABLISHED and not r[2].endswith(etcd_itself)}
            if len(theirs) >= 2:
                break
            time.sleep(0.2)
        time.sleep(1.0)
        bed.unplug("h0")
    except (OSError, KeyError):
        pass  # the bed has gone


DRILL = HostDrill(
    framework="torch",
    expects="JOIN003",
    blames=(0,),
    on=(1, 2),
    arrange=arrange,
    absent=(3,),
    late={1: 2.0, 2: 2.0},
    options=("--timeout", "25", "--coordinator", f"etcd://{SERVICE}:2379/drill"),
    within=25.0,
    allowed=("NET016",),
    needs=etcd.NEEDS,
)
