"""The world is one larger than the number of workers that are started."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="JOIN001",
    workers=3,
    guilty=3,
    inside=True,
    options=("--timeout", "6"),
    exit_codes=(3,),
)
