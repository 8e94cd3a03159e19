"""Each rank computes with more threads than its share of cores."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_slow.py",
    expects="SLOW006",
    inside=True,
    guilty=-1,
    ends=False,
)
