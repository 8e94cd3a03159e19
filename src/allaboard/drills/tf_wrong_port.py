"""One worker's TF_CONFIG gives another worker a wrong port."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py", expects="JOIN007", fault="wrong-port", inside=True, exit_codes=(3,)
)
