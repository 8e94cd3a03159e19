"""One of two parameter servers has 8 Mbit/s where the others have a gigabit and more."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="PS007",
    blames=(3,),
    roles=("worker", "worker", "ps", "ps"),
    arrange=lambda bed: bed.narrow("h3", 8),
    arguments=("--width", "1200"),
    options=(),
    ends=False,
    within=60.0,
    allowed=("NET008",),
)
