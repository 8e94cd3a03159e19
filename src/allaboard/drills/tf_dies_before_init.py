"""A TensorFlow worker raises before the strategy."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="JOIN003",
    fault="dies-before-init",
    inside=True,
    exit_codes=(3,),
    # TensorFlow may take longer to import than the exception is held back for the roll call.
    allowed=("EXIT002",),
)
