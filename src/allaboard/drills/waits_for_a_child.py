"""A rank waits for a program that it started and that takes its time; --on-hang stop lets it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG018",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "60"),
    arguments=("--steps", "90"),
    exit_codes=(0,),
    over=True,
)
