"""A rank has trained to its end and never leaves, after all others have."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG008",
    inside=True,
    arguments=("--steps", "80"),
    options=("--on-hang", "stop", "--hang-after", "33"),
    exit_codes=(4,),
)
