"""A rank is in a call of a library that takes hours, and the others wait for it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_beside.py",
    expects="HANG025",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "75"),
    exit_codes=(4,),
    long="a call may take a minute",
)
