"""A rank was given another batch size."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_shards.py",
    expects="DATA003",
    inside=True,
    ends=False,
)
