"""A rank sleeps, and its peers' very short timeout runs out before it can be said that they wait for it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT005",
    fault="asleep",
    inside=True,
    arguments=("--timeout", "2"),
)
