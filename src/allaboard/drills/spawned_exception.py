"""A rank that torch.multiprocessing.spawn started raises; spawn itself tells of whichever rank fell first."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_spawned.py",
    expects="EXIT002",
    workers=1,
    inside=True,
)
