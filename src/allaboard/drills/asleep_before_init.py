"""A rank sleeps in its own code before init."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="JOIN002",
    inside=True,
    options=("--timeout", "6", "--timeout-hard", "14"),
    exit_codes=(3,),
)
