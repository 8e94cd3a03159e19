"""The script never joins: each process trains alone, and ends with 0."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_alone.py",
    expects="JOIN010",
    workers=2,
    blames=(0, 1),
    inside=True,
    exit_codes=(0,),
)
