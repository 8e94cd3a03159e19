"""The input of TensorFlow 2's worker stands at a pipe that nobody writes to; the chief waits for it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf2_ps.py",
    expects="PS016",
    workers=1,
    guilty=0,
    options=("--ps", "1", "--chief"),
    inside=True,
    ends=False,
    long="most of a minute without any progress, before it is said",
)
