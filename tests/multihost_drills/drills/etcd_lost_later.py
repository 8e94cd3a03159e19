"""The etcd in which the hosts found each other is out of reach once they train: nothing is said of it."""

from multihost_drills.contract import HostDrill
from testbed import Bed, etcd
from testbed.firewall import Block


def goes(bed: Bed) -> None:
    for host in bed.hosts:
        bed.block(host, Block(way="out", ports=(etcd.PORT,)))


DRILL = HostDrill(
    framework="torch",
    expects="",
    hosts=3,
    arrange=lambda bed: etcd.Etcd(bed, "h2"),
    then=goes,
    arguments=("--steps", "60"),
    options=("--timeout", "30", "--coordinator", "etcd://h2:2379/drill"),
    exit_codes=(0,),
    needs=etcd.NEEDS,
)
