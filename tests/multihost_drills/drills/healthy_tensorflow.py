"""Nothing is wrong: four hosts start, train and end, and nothing is said of it."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="elsewhere-tensorflow trains it on three hosts",
)
