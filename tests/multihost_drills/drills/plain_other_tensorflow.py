"""One host runs the script without allaboard: training starts, nothing is wrong."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    plain=(2,),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="as with torch; TensorFlow takes 15 s to import",
)
