"""A firewall drops what one TensorFlow worker sends to open a connection to the other, which reaches it well:
the strategy starts, its first all-reduce hangs, and the bound that was asked for ends it."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="tensorflow",
    expects="NET006",
    hosts=2,
    blames=(0, 1),
    arrange=lambda bed: bed.block("h1", Block(peer="h0", new=True)),
    within=9.0,
    bound=22.0,
    allowed=("NET012",),
)
