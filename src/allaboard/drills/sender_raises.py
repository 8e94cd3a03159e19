"""A thread that sends rank 0 a figure after every step raises; the rank trains on, rank 0 waits for it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_sender.py",
    expects="HANG023",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
