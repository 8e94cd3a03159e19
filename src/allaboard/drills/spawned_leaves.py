"""A rank that torch.multiprocessing.spawn started ends with exit code 0 while the others train."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_spawned.py",
    expects="EXIT004",
    workers=1,
    inside=True,
)
