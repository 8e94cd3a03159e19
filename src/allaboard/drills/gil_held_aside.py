"""A thread beside the training waits in C without letting the GIL go; the training cannot go on."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG015",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
