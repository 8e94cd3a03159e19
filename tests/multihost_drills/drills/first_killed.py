"""The worker of the host where all meet is killed in mid-training; the others fall because of it."""

import signal

from multihost_drills.contract import HostDrill
from testbed import Bed

WORKER = r"\S+ \S*torch_ddp\.py"


def kill(bed: Bed) -> None:
    bed.signal("h0", signal.SIGKILL, WORKER)


DRILL = HostDrill(
    framework="torch",
    expects="EXIT001",
    hosts=3,
    blames=(0,),
    then=kill,
    exit_codes=(1, 137, -9),
)
