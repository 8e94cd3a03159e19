"""The host of a parameter server does not know the name of the first host."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="NET001",
    blames=(3,),
    on=(3,),
    roles=("worker", "worker", "ps", "ps"),
    arrange=lambda bed: bed.name("h3", "h0", None),
    ends=False,
    within=20.0,
    allowed=("JOIN001", "NET002", "PS003"),
    long="net-no-name shows the same of a worker",
)
