"""A rank reads its data more slowly than the others."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_slow.py",
    expects="SLOW001",
    inside=True,
    ends=False,
)
