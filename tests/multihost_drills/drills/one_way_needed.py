"""Of two hosts the one that gloo lets connect is rejected by the other: it fails, the other hangs in
init, and the bound that was asked for ends it."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET006",
    hosts=2,
    blames=(0, 1),
    arrange=lambda bed: bed.block(
        "h0", Block(verdict="reset", peer="h1", new=True, but=(MEETING_PORT,))
    ),
    bound=22.0,
    exit_codes=(1, 3),
    allowed=("EXIT005", "EXIT002"),
)
