"""A rank asks for the maximum where the others ask for the sum."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="NUM003",
    fewest=3,
    inside=True,
    options=("--on-hang", "stop"),
    exit_codes=(4,),
)
