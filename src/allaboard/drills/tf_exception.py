"""A TensorFlow worker raises in the middle of training."""

from allaboard.contracts import Drill

DRILL = Drill(script="tf_mwms.py", expects="EXIT002", fault="exception", inside=True)
