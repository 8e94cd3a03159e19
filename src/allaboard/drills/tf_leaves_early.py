"""A TensorFlow worker ends with exit code 0 while the others train."""

from allaboard.contracts import Drill

DRILL = Drill(script="tf_mwms.py", expects="EXIT004", fault="leaves-early", inside=True)
