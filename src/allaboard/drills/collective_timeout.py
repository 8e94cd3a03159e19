"""A rank sleeps until the short timeout of its peers runs out."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT005",
    blames=(0, 2),
    fault="asleep",
    inside=True,
    arguments=("--timeout", "9"),
    allowed=("HANG005",),
)
