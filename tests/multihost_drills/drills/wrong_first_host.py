"""One host's MASTER_ADDR is that of another host of the job, which does not hold rank 0."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET017",
    hosts=3,
    blames=(2,),
    environment=lambda host, env: env | ({"MASTER_ADDR": "h1"} if host == 2 else {}),
)
