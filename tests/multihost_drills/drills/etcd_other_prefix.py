"""Hosts find each other in an etcd; one of them was told another prefix than the others."""

from multihost_drills.contract import HostDrill
from testbed import Bed, etcd

SERVICE = "h3"


def arrange(bed: Bed) -> None:
    etcd.Etcd(bed, SERVICE)


def environment(host: int, told: dict[str, str]) -> dict[str, str]:
    prefix = "job-7" if host == 2 else "job-8"
    return {**told, "ALLABOARD_COORDINATOR": f"etcd://{SERVICE}:2379/{prefix}"}


DRILL = HostDrill(
    framework="torch",
    expects="JOIN001",
    hosts=4,
    blames=(2, 3),
    on=(0, 1),
    arrange=arrange,
    absent=(3,),
    environment=environment,
    options=("--timeout", "12"),
    within=14.0,
    says=r"is it given etcd://h3:2379/job-8 there too",
    needs=etcd.NEEDS,
)
