"""One host has another numpy."""

from multihost_drills.contract import HostDrill
from testbed import overlay

DRILL = HostDrill(
    framework="jax",
    expects="ENV006",
    blames=(1,),
    arrange=lambda bed: overlay.other_version(bed, "h1", "numpy", "2.3.5"),
    environment=lambda host, env: overlay.first(env) if host == 1 else env,
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="as with another torch",
)
