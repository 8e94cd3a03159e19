"""accelerate finds no GPU and is not told that the CPU is meant: each process trains alone, to the end."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_alone.py",
    expects="JOIN010",
    workers=2,
    blames=(0, 1),
    inside=True,
    exit_codes=(0,),
)
