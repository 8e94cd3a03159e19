"""A rank loads an older checkpoint after DDP was built."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_shards.py",
    expects="NUM006",
    fewest=3,
    inside=True,
    options=("--check-values", "5"),
    ends=False,
)
