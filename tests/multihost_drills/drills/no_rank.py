"""One host is not told its rank."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="JOIN003",
    blames=(2,),
    environment=lambda host, env: {k: v for k, v in env.items() if k != "RANK" or host != 2},
    on=(0, 1, 3),
    allowed=("EXIT002",),
    exit_codes=(1, 3),
)
