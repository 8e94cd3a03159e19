"""Hosts find each other in an etcd, and a firewall keeps one of them from it."""

from multihost_drills.contract import HostDrill
from testbed import Bed, etcd
from testbed.firewall import Block


def arrange(bed: Bed) -> None:
    etcd.Etcd(bed, "h0")
    bed.block("h0", Block(peer="h2", ports=(etcd.PORT,)))


DRILL = HostDrill(
    framework="torch",
    hosts=3,
    expects="NET016",
    blames=(2,),
    on=(2,),
    arrange=arrange,
    options=("--timeout", "8", "--coordinator", "etcd://h0:2379/drill"),
    within=10.0,
    allowed=("JOIN001",),
    needs=etcd.NEEDS,
)
