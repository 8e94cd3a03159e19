"""A TensorFlow worker raises before the strategy."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py", expects="JOIN003", fault="dies-before-init", inside=True, exit_codes=(3,)
)
