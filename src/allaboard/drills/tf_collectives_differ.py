"""One TensorFlow worker makes a collective of another dtype than the others, who are at their gradients."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_mwms.py",
    expects="EXIT009",
    workers=2,
    guilty=0,
    blames=(0, 1),
    inside=True,
    fault="collectives-differ",
)
