"""A TensorFlow worker sleeps in the middle of training."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="HANG005",
    fault="asleep",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
