"""The dataset of a rank raises in a worker process of its DataLoader; the line to mend is the dataset's."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_ddp.py",
    expects="EXIT002",
    inside=True,
    arguments=("--loader-workers", "1"),
)
