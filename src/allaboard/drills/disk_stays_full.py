"""A rank tries to save to a disk that stays full, without end, and the others wait for it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_beside.py",
    expects="HANG026",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "75"),
    exit_codes=(4,),
    allowed=("HANG005",),
    long="a checkpoint may take a minute",
)
