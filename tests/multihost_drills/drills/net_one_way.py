"""One host lets in no new connections of another, which lets in those of the first."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET006",
    blames=(1, 3),
    arrange=lambda bed: bed.block("h3", Block(peer="h1", but=(MEETING_PORT,), new=True)),
    ends=False,
)
