"""Two hosts are told the same rank, and one rank is nobody."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="JOIN005",
    blames=(1, 2),
    environment=lambda host, env: env | ({"RANK": "1"} if host == 2 else {}),
)
