"""A parameter server opens its port beside the one that all others have in their list."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="JOIN007",
    workers=2,
    guilty=2,
    options=("--ps", "1"),
    inside=True,
    fault="other-port",
    exit_codes=(3,),
)
