"""A worker of a synchronous job is killed by SIGKILL; the chief waits for its gradient."""

from allaboard.contracts import Drill
from allaboard.launch.signals import kill

DRILL = Drill(
    script="tf1_ps.py",
    expects="EXIT001",
    workers=2,
    guilty=1,
    trains=0,
    options=("--ps", "1"),
    outside=kill,
    arguments=("--sync",),
)
