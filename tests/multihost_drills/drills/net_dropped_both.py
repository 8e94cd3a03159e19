"""A firewall drops all that one host sends and all that is sent to it."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET003",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: bed.block("h2", Block(way="both")),
    within=14.0,
    allowed=("JOIN001",),
    long="net-dropped is the same for what is said",
)
