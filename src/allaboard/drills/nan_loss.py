"""A rank's data has a NaN in one batch."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_shards.py",
    expects="NUM005",
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
