"""A firewall lets the meeting place through and drops everything else of one host."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET006",
    blames=(2,),
    arrange=lambda bed: bed.block("h2", Block(way="both", but=(MEETING_PORT,))),
)
