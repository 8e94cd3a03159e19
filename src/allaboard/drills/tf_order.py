"""One worker's TF_CONFIG lists the workers in another order."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py", expects="JOIN007", fewest=3, fault="order", inside=True, exit_codes=(3,)
)
