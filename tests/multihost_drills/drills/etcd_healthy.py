"""Four hosts find each other in an etcd that runs on the last of them, and train."""

from multihost_drills.contract import HostDrill
from testbed import etcd

DRILL = HostDrill(
    framework="torch",
    expects="",
    arrange=lambda bed: etcd.Etcd(bed, "h3"),
    arguments=("--steps", "20"),
    options=("--timeout", "30", "--coordinator", "etcd://h3:2379/drill"),
    exit_codes=(0,),
    needs=etcd.NEEDS,
)
