"""A rank sleeps; only its pair waits for it, the other pair trains on."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_by_hand.py",
    expects="HANG005",
    workers=4,
    inside=True,
    arguments=("--pairs",),
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
