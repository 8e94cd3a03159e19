"""One large variable puts nearly all bytes on one of two parameter servers."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="tf1_ps.py",
    expects="PS006",
    workers=1,
    guilty=-1,
    options=("--ps", "2"),
    arguments=("--width", "20000"),
    ends=False,
)
