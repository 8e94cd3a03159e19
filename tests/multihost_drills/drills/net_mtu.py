"""Packets of more than 1000 bytes are lost on the way to and from one host."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET007",
    blames=(2,),
    arrange=lambda bed: bed.block("h2", Block(way="in", larger=1000)),
    within=8.0,
)
