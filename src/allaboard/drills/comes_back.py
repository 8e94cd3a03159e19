"""A rank sleeps for a while in the middle of training, and goes on."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG005",
    inside=True,
    ends=False,
    over=True,
)
