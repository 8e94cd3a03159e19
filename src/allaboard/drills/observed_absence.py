"""Nobody is held, and a rank sleeps before init: the others block inside it."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="JOIN004",
    workers=3,
    blames=(0, 2),
    fault="asleep-before-init",
    inside=True,
    options=("--observe",),
    ends=False,
)
