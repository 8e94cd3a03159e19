"""A rank leaves its pair's collective out, and trains on alone."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="HANG012",
    workers=4,
    inside=True,
    arguments=("--pairs",),
    ends=False,
)
