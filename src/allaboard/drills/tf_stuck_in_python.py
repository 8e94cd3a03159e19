"""A TensorFlow worker spins in a loop of its own code."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="HANG002",
    fault="stuck-in-python",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
