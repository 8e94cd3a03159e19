"""The chief of a TensorFlow 1 job sleeps before its Server, so that nobody initialises."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS002",
    workers=1,
    guilty=0,
    options=("--ps", "1", "--chief"),
    inside=True,
    fault="asleep",
    ends=False,
)
