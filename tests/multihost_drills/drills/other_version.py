"""One host has an older build of the framework."""

from multihost_drills.contract import HostDrill
from testbed import overlay

DRILL = HostDrill(
    framework="torch",
    expects="ENV006",
    blames=(2,),
    arrange=lambda bed: overlay.other_version(bed, "h2", "torch", "2.12.1"),
    environment=lambda host, env: overlay.first(env) if host == 2 else env,
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
