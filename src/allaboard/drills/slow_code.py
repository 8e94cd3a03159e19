"""A rank does something in every step that the others do not."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_slow.py",
    expects="SLOW001",
    inside=True,
    ends=False,
)
