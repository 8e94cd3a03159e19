"""A rank calls a broadcast that the others do not, by a way that leaves no trace in Python."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG006",
    fewest=3,
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
