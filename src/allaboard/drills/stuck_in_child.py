"""A rank waits for a program that it started and that never ends."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG002",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
