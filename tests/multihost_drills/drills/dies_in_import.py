"""On one host the import of the framework fails: a library that it needs is not there."""

from multihost_drills.contract import HostDrill
from testbed import overlay

DRILL = HostDrill(
    framework="torch",
    expects="JOIN003",
    blames=(2,),
    arrange=lambda bed: overlay.broken(bed, "h2", "torch"),
    environment=lambda host, env: overlay.first(env) if host == 2 else env,
    on=(0, 1, 3),
    allowed=("EXIT002",),
    exit_codes=(1, 3),
)
