"""One host is told to use an interface that it has, and that leads to nobody."""

from multihost_drills.contract import HostDrill
from testbed import Bed


def another(bed: Bed) -> None:
    bed.run("h2", "ip", "link", "add", "docker0", "type", "bridge")
    bed.run("h2", "ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
    bed.run("h2", "ip", "link", "set", "docker0", "up")


DRILL = HostDrill(
    framework="torch",
    expects="NET006",
    blames=(2,),
    arrange=another,
    environment=lambda host, env: env | ({"GLOO_SOCKET_IFNAME": "docker0"} if host == 2 else {}),
    arguments=("--steps", "20"),
    exit_codes=(0,),
)
