"""All names resolve to IPv6 and IPv4 everywhere, and on one host IPv6 is off: gloo takes IPv4 there."""

from multihost_drills.contract import HostDrill
from testbed import ipv6

DRILL = HostDrill(
    framework="torch",
    expects="NET018",
    hosts=3,
    blames=(2,),
    arrange=lambda bed: ipv6.both(bed, without=("h2",)),
)
