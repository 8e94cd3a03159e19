"""A rank reduces six elements where the others reduce four."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="NUM002",
    fewest=3,
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
