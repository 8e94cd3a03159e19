"""A rank says that it is rank 0, which is there already."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="JOIN005",
    workers=3,
    guilty=2,
    blames=(0,),
    inside=True,
    exit_codes=(3,),
)
