"""The host where all meet runs the script without allaboard: training starts, nothing is wrong."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="jax",
    expects="",
    plain=(0,),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="as with torch",
)
