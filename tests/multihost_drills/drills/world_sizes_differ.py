"""One host is told that there are three of them, the others four."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="JOIN006",
    blames=(3,),
    environment=lambda host, env: env | ({"WORLD_SIZE": "5"} if host == 3 else {}),
)
