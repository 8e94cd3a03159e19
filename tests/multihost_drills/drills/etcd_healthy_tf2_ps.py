"""A ParameterServerStrategy over four hosts that find each other in an etcd: it starts, trains and ends, and
nothing is said of it."""

from multihost_drills.contract import HostDrill
from testbed import etcd

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    roles=("chief", "worker", "worker", "ps"),
    scripts=dict.fromkeys(range(4), "tf2_ps.py"),
    arrange=lambda bed: etcd.Etcd(bed, "h3"),
    arguments=("--rounds", "20"),
    options=("--coordinator", "etcd://h3:2379/drill"),
    exit_codes=(0,),
    needs=etcd.NEEDS,
    long="etcd-healthy shows the same of PyTorch",
)
