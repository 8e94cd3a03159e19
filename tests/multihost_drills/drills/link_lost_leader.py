"""The first host and another hear nothing more of each other, nor do their agents."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET012",
    hosts=3,
    blames=(0, 2),
    on=(0, 1),
    then=lambda bed: bed.block("h0", Block(way="both", peer="h2")),
    options=(),
    ends=False,
    within=15.0,
)
