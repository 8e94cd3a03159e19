"""Every host's MASTER_ADDR is that of the second host; rank 0 runs on the first."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET017",
    hosts=3,
    blames=(0,),
    on=(0,),
    environment=lambda host, env: env | {"MASTER_ADDR": "h1"},
    within=9.0,
    allowed=("NET002", "JOIN001"),
)
