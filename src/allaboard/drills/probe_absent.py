"""An interpreter that loads no sitecustomize."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    command=("{python}", "-I"),
    expects="HOST001",
    guilty=-1,
    workers=1,
    ends=False,
)
