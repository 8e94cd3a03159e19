"""The agent of a host is killed in mid-training, and its worker ends with it."""

import signal

from multihost_drills.contract import HostDrill
from testbed import Bed

AGENT = r"\S+ -m allaboard run "
"""Its keeper, which bears the same name and clears up, is younger."""


def kill(bed: Bed) -> None:
    bed.signal("h1", signal.SIGKILL, AGENT)


DRILL = HostDrill(
    framework="torch",
    expects="EXIT010",
    hosts=3,
    blames=(1,),
    on=(0, 2),
    then=kill,
    within=8.0,
    exit_codes=(1, 137, -9),
)
