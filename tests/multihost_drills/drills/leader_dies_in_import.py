"""On the host where all are to meet the import of the framework fails; the others learn why."""

from multihost_drills.contract import HostDrill
from testbed import overlay

DRILL = HostDrill(
    framework="torch",
    expects="JOIN003",
    blames=(0,),
    on=(1, 2, 3),
    arrange=lambda bed: overlay.broken(bed, "h0", "torch"),
    environment=lambda host, env: overlay.first(env) if host == 0 else env,
    allowed=("EXIT002",),
    exit_codes=(1, 3),
)
