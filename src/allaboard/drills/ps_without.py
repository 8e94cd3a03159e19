"""Workers of TensorFlow 1 with replica_device_setter, and no parameter server at all."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS010",
    workers=2,
    guilty=0,
    blames=(0, 1),
    ends=False,
    allowed=("PS002",),
)
