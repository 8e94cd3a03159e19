"""One large variable of a ParameterServerStrategy puts nearly all bytes on one of two servers."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf2_ps.py",
    expects="PS006",
    workers=1,
    guilty=-1,
    options=("--ps", "2", "--chief"),
    arguments=("--width", "60000"),
    ends=False,
    long="ps-uneven shows the same under TensorFlow 1",
)
