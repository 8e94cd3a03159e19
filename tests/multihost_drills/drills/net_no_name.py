"""One host does not know the name of the first."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET001",
    blames=(2,),
    on=(2,),
    arrange=lambda bed: bed.name("h2", "h0", None),
    allowed=("JOIN001",),
)
