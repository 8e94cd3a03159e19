"""Two hosts of three hear nothing more of each other, in the middle of a TensorFlow training."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="tensorflow",
    expects="NET012",
    hosts=3,
    blames=(1, 2),
    then=lambda bed: bed.block("h1", Block(way="both", peer="h2")),
    options=(),
    ends=False,
    within=15.0,
)
