"""A rank enters two groups in the other order than the others: each waits for the other."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="HANG021",
    workers=2,
    blames=(0, 1),
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
