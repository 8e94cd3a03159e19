"""A firewall drops what one host sends to the meeting place."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET003",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: bed.block("h2", Block(way="out", ports=(MEETING_PORT,))),
    within=14.0,
    allowed=("JOIN001",),
)
