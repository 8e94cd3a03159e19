"""The data was not shared out: every rank reads all of it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_shards.py",
    expects="DATA002",
    workers=3,
    inside=True,
    guilty=0,
    blames=(0, 1, 2),
    ends=False,
)
