"""A firewall that passes the first connections and drops later ones: the roll call's own trials find
nothing, and the framework's start hangs."""

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET012",
    blames=(0, 2),
    # h2 tries two hosts, with 60 bytes each; what gloo opens comes after those.
    arrange=lambda bed: bed.block("h2", Block(way="out", new=True, but=(MEETING_PORT,), after=150)),
    hosts=3,
    within=12.0,
    bound=22.0,
    allowed=("JOIN004",),
)
