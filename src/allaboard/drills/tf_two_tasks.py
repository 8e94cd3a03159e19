"""Two workers have the same task index."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="JOIN005",
    fault="two-tasks",
    blames=(0,),
    inside=True,
    exit_codes=(3,),
)
