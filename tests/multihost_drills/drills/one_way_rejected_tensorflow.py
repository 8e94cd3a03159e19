"""A firewall rejects what one TensorFlow worker sends to open a connection to the other, which reaches it
well: TensorFlow itself fails in its first all-reduce."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="tensorflow",
    expects="NET006",
    hosts=2,
    blames=(0, 1),
    arrange=lambda bed: bed.block("h1", Block(verdict="reset", peer="h0", new=True)),
    within=9.0,
    bound=40.0,
    exit_codes=(1, 3),
    allowed=("NET012", "EXIT005", "EXIT002"),
    long="one-way-tensorflow shows the link, and the end",
)
