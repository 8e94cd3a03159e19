"""All names resolve to IPv6 and IPv4 everywhere, and on one host IPv6 is off: gloo takes IPv4 there."""

from allaboard.contracts import HostDrill
from allaboard.testbed import sixth

DRILL = HostDrill(
    framework="torch",
    expects="NET018",
    hosts=3,
    blames=(2,),
    arrange=lambda bed: sixth.both(bed, without=("h2",)),
)
