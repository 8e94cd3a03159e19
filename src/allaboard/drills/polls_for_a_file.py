"""A rank asks for a file without a pause, now in the question, now at the line that asks."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="HANG002",
    workers=2,
    inside=True,
    ends=False,
)
