"""A rank expects a broadcast from another root."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="HANG010",
    fewest=3,
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
