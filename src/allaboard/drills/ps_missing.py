"""A parameter server sleeps before it makes its Server, in a job that is only observed."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS003",
    workers=2,
    guilty=2,
    options=("--ps", "1", "--observe"),
    inside=True,
    fault="asleep",
    ends=False,
)
