"""A rank calls a functional broadcast, as DTensor does, that the others do not."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG009",
    fewest=3,
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
