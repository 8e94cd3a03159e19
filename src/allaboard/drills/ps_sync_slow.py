"""A worker of a synchronous TensorFlow 1 job reads its data slowly; the other one waits in every step."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS011",
    workers=2,
    guilty=1,
    options=("--ps", "1"),
    arguments=("--sync",),
    inside=True,
    fault="slow",
    ends=False,
)
