"""A firewall says that there is no way from one host to the meeting place."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET004",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: bed.block(
        "h0", Block(verdict="unreachable", peer="h2", ports=(MEETING_PORT,))
    ),
    within=14.0,
    allowed=("JOIN001",),
)
