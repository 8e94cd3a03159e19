"""A rank waits for a program that it started and that never ends."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG002",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "70"),
    exit_codes=(4,),
    allowed=("HANG018",),
    long="a minute must pass: waits-for-a-child shows the wait",
)
