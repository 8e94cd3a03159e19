"""Of two hosts the one that gloo lets wait for a connection is rejected by the other's firewall: told,
and they train, whatever bound was asked for."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET006",
    hosts=2,
    blames=(0, 1),
    arrange=lambda bed: bed.block(
        "h1", Block(verdict="reset", peer="h0", new=True, but=(MEETING_PORT,))
    ),
    arguments=("--steps", "20"),
    exit_codes=(0,),
)
