"""A global batch of ten rows for four replicas of one process."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mirrored.py",
    expects="DATA004",
    workers=1,
    guilty=-1,
    inside=True,
    ends=False,
    long="as the empty replicas",
)
