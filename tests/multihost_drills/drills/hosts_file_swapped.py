"""On one host /etc/hosts has the names of two others the wrong way round."""

from multihost_drills.contract import HostDrill
from testbed import Bed


def swapped(bed: Bed) -> None:
    bed.name("h2", "h0", bed.addresses["h1"])
    bed.name("h2", "h1", bed.addresses["h0"])


DRILL = HostDrill(
    framework="torch",
    expects="NET017",
    hosts=3,
    blames=(2,),
    on=(2,),
    arrange=swapped,
    allowed=("JOIN001",),
)
