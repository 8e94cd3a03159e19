"""A rank reduces integers where the others reduce floats."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="NUM001",
    fewest=3,
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
