"""All ranks wait for data most of the time."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_slow.py",
    expects="SLOW002",
    workers=3,
    inside=True,
    guilty=0,
    blames=(0, 1, 2),
    ends=False,
)
