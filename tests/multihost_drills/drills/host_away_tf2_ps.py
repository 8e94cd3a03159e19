"""A worker's host of a ParameterServerStrategy loses its cable in mid-training: the chief waits for what it
had handed to it, and nobody else says which host that is."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="HANG019",
    blames=(2,),
    on=(0, 1, 3),
    roles=("chief", "worker", "worker", "ps"),
    scripts=dict.fromkeys(range(4), "tf2_ps.py"),
    then=lambda bed: bed.unplug("h2"),
    options=(),
    ends=False,
    within=60.0,
    allowed=("NET012",),
    long="36 s until a host counts as away",
)
