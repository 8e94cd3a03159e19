"""device_filters of one worker's session leave out the second of two parameter servers."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS013",
    workers=2,
    guilty=1,
    options=("--ps", "2"),
    inside=True,
    fault="hides",
    exit_codes=(0, 1, 143),
    ends=False,
    allowed=("EXIT002",),
    long="it fails at once in any case",
)
