"""TF_CONFIG of a MultiWorkerMirroredStrategy lists a parameter server that nobody starts."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="PS009",
    workers=2,
    guilty=0,
    blames=(0, 1),
    inside=True,
    fault="lists-ps",
    ends=False,
)
