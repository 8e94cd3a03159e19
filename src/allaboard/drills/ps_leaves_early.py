"""A worker of an asynchronous TensorFlow 1 job comes to the end of its data after forty steps."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS012",
    workers=2,
    guilty=1,
    options=("--ps", "1"),
    inside=True,
    fault="leaves",
    ends=False,
    long="the others have to train on for a while",
)
