"""Nothing is wrong: two workers and two parameter servers of TensorFlow 1, each on a host of its own,
start, train and end, the servers too, and nothing is said of it."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    roles=("worker", "worker", "ps", "ps"),
    arguments=("--steps", "200"),
    options=(),
    exit_codes=(0,),
)
