"""Nothing is wrong: four hosts start, train and end, and nothing is said of it."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="",
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="tests/zoo/test_under_launchers.py trains PyTorch on four hosts",
)
