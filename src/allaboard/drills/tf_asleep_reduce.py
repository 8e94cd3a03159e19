"""A TensorFlow worker sleeps between a step and the reduction of what it returned, which the others wait in,
as those of Keras' `fit` do while one sleeps in a callback."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="HANG005",
    fault="asleep-before-reduce",
    inside=True,
    arguments=("--eager",),
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
