"""One host's link goes down to 8 Mbit/s in the middle of the training."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="SLOW007",
    hosts=3,
    blames=(2,),
    then=lambda bed: bed.narrow("h2", 8),
    arguments=("--width", "768"),
    options=(),
    ends=False,
    within=60.0,
    long="medians of many steps take half a minute",
)
