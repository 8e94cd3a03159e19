"""A worker of a synchronous job never comes; the others go on at a part of the rate, only observed."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS004",
    workers=2,
    guilty=1,
    options=("--ps", "1", "--observe"),
    arguments=("--sync",),
    inside=True,
    fault="asleep",
    ends=False,
)
