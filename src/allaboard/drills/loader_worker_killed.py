"""A worker process of a rank's DataLoader is killed by SIGKILL."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT007",
    inside=True,
    arguments=("--loader-workers", "1"),
)
