"""A rank makes two calls of one shape in the other order than the others."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="NUM004",
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
