"""The generator that feeds a TensorFlow worker waits for a thread of the program that has ended."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf_generator.py",
    expects="HANG005",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "75"),
    exit_codes=(4,),
    long="a generator may be slow for a minute",
)
