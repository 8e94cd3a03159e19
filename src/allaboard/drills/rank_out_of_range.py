"""A rank says that it is one more than the last that its world has."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="JOIN011",
    workers=3,
    guilty=2,
    blames=(3,),
    inside=True,
    exit_codes=(3,),
)
