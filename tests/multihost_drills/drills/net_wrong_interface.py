"""One host is told to use an interface that it does not have."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET010",
    blames=(2,),
    environment=lambda host, env: env | ({"GLOO_SOCKET_IFNAME": "ib7"} if host == 2 else {}),
)
