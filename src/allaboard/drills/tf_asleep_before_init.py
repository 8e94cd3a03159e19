"""A TensorFlow worker sleeps before the strategy."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="JOIN002",
    fault="asleep-before-init",
    inside=True,
    options=("--timeout", "6", "--timeout-hard", "14"),
    exit_codes=(3,),
)
