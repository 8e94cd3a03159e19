"""The agent of a host is killed, and its worker with it, while rank 0 is in an evaluation: it falls later."""

import signal

from multihost_drills.contract import HostDrill
from testbed import Bed

AGENT = r"\S+ -m allaboard run "


def kill(bed: Bed) -> None:
    bed.signal("h1", signal.SIGKILL, AGENT)


DRILL = HostDrill(
    framework="torch",
    expects="EXIT010",
    hosts=2,
    blames=(1,),
    on=(0,),
    faults={0: "evaluates"},
    arguments=("--at-step", "31"),
    then=kill,
    within=40.0,
    exit_codes=(1, 137, -9),
    long="20 s of an evaluation",
)
