"""One of two workers has 8 Mbit/s to every parameter server."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="PS007",
    blames=(1,),
    roles=("worker", "worker", "ps", "ps"),
    arrange=lambda bed: bed.narrow("h1", 8),
    arguments=("--width", "1200"),
    options=(),
    ends=False,
    within=60.0,
    allowed=("NET008",),
    long="ps-slow-link shows the same at the other end",
)
