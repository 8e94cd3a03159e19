"""The agents meet at a port of their own, and TensorFlow's tasks at theirs; nothing is wrong."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    hosts=3,
    expects="",
    arguments=("--steps", "20"),
    options=("--timeout", "30", "--coordinator", "h0:29400"),
    exit_codes=(0,),
)
