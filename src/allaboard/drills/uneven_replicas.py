"""A global batch of ten rows for four replicas of one process."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mirrored.py",
    expects="DATA004",
    workers=1,
    guilty=0,
    inside=True,
    exit_codes=(0,),
    long="as the empty replicas",
)
