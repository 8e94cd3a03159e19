"""A ParameterServerStrategy in a cluster of workers alone."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf2_ps.py",
    expects="PS010",
    workers=2,
    guilty=0,
    blames=(0, 1),
    allowed=("EXIT002",),
    long="ps-without shows the silent form",
)
