"""The branch for `ps` of a TensorFlow 1 script returns instead of serving for ever."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS001",
    workers=2,
    guilty=2,
    options=("--ps", "1"),
    inside=True,
    fault="returns",
    ends=False,
)
