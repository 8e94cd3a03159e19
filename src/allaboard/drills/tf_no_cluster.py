"""One worker has a TF_CONFIG without a cluster and would train alone."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="JOIN006",
    workers=3,
    fault="no-cluster",
    guilty=2,
    inside=True,
    exit_codes=(3,),
)
