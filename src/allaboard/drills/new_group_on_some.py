"""A rank leaves out a new_group that it is not in; the job trains on."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="HANG016",
    workers=3,
    inside=True,
    ends=False,
)
