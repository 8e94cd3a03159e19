"""A firewall rejects what one host sends to the meeting place, as if nobody listened there."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET002",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: bed.block("h0", Block(verdict="reset", peer="h2", ports=(MEETING_PORT,))),
    within=14.0,
    allowed=("JOIN001",),
)
