"""Two hosts of three hear nothing more of each other, in the middle of the training."""

from multihost_drills.contract import HostDrill
from testbed.firewall import Block

DRILL = HostDrill(
    framework="torch",
    expects="NET012",
    hosts=3,
    blames=(1, 2),
    then=lambda bed: bed.block("h1", Block(way="both", peer="h2")),
    options=("--on-hang", "stop", "--hang-after", "12"),
    exit_codes=(4,),
    within=12.0,
)
